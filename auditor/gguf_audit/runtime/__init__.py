"""What a runtime makes of a layout: how much it allocates, and when it refuses."""
