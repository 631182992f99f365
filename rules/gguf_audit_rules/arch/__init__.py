"""Rules about hyper-parameters."""
