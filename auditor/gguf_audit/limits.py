"""Every number that bounds what an untrusted input can make us do.

Enforced in two places: ``formats`` (counts, lengths, depths) and ``sources``
(what may be opened). A limit is our own, below what llama.cpp accepts; what
exceeds one is *not audited*, never clean.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LIMITS", "Limits"]

KIB = 1 << 10
MIB = 1 << 20


class Limits(NamedTuple):
    """Every number that bounds what an untrusted input can make us do.

    No struct, because the child that renders templates has these too and no msgspec.
    """

    #: Of one file, and of all shards of a set. Real models have fewer than 100 keys, 5,000
    #: have been seen in the wild, and each shard has three of its own.
    metadata_keys: int = 65_536
    #: Of one file, and of all shards of a set. A mixture of experts with unstacked experts
    #: has tens of thousands.
    tensors: int = 262_144
    #: The GGUF specification's own bound, in bytes; of the names of an architecture, of a
    #: tokenizer and of what is a ``type`` too.
    key_bytes: int = 65_535
    #: ``GGML_MAX_NAME`` less its terminating NUL (ggml/include/ggml.h).
    tensor_name_bytes: int = 63
    #: All string values of one file together, arrays not counted; one string of an array that
    #: is looked at; and all files of templates of a checkpoint. A longest string of 35 MiB
    #: (``tokenizer.huggingface.json``) is real.
    string_bytes: int = 64 * MIB
    #: Fixed-size items are skipped with one multiplication, so this is generous.
    array_items: int = 16_777_216
    #: All strings in the arrays of one file together, and items of one array that are
    #: unpacked: they are walked one by one, and what looks at all of them holds 100 bytes
    #: and more for each. 262,144 tokens and 514,906 merges are real, and 901,629 pieces.
    array_strings: int = 1_572_864
    #: Of strings in the arrays of one file together that are decoded, which takes four times
    #: that in memory and again in a copy; 262,144 tokens and 514,906 merges have 13 MiB.
    decoded_bytes: int = 32 * MIB
    #: Arrays of arrays are legal in the specification; llama.cpp refuses them.
    array_depth: int = 4
    #: Arrays inside arrays, in one file together; no real file has any.
    nested_arrays: int = 65_536
    #: All metadata and tensor infos of one file together, and of all shards of a set.
    header_bytes: int = 256 * MIB
    #: ``GGML_MAX_DIMS``.
    dimensions: int = 4
    alignment_bytes: int = MIB
    shards: int = 10_000
    #: Read at either end of what a file holds behind its last tensor.
    tail_sample_bytes: int = 64 * KIB
    #: Data of one tensor of RoPE factors: half a head of 8,192 elements; real heads have
    #: 512 at most.
    factor_bytes: int = 16 * KIB
    #: Data of one tensor of floats, all of which are looked at: norms, biases and scales have
    #: 200 KiB, routers of 128 experts 1 MiB, and matrices more.
    floats_bytes: int = MIB
    #: Of all those of one model, which takes 10 ms; a model of 270 million parameters has
    #: 0.2 MiB of them, most have less than 16.
    all_floats_bytes: int = 16 * MIB
    #: How many those may be: each is a read, of 20 us.
    floats_tensors: int = 4096
    #: ``config.json`` and its like; the longest published ones are under 100 KiB.
    config_bytes: int = 16 * MIB
    #: ``tokenizer.json``; 35 MiB is real. What is read takes five times that in memory.
    tokenizer_bytes: int = 64 * MIB
    #: ``tokenizer.model``; that of 262,144 pieces has 4.5 MiB.
    sentencepiece_bytes: int = 16 * MIB
    #: ``vocab.txt``, ``merges.txt`` and their like; 500,000 merges take 8 MiB.
    vocabulary_text_bytes: int = 32 * MIB
    #: Tokens of a reference, and the number after its highest id; 901,629 are real.
    vocabulary_tokens: int = 1 << 20
    json_depth: int = 64
    #: Commas and opening brackets of one document, each a Python object or two; the
    #: ``tokenizer.json`` of 262,144 tokens and 514,906 merges has 1.9 million.
    json_values: int = 2_500_000
    json_integer_digits: int = 32
    #: safetensors' own ``MAX_HEADER_SIZE`` (safetensors/src/tensor.rs).
    safetensors_header_bytes: int = 100_000_000
    #: PyTorch makes no tensor with more (aten/src/ATen/TensorIterator.cpp).
    safetensors_dimensions: int = 64
    #: ``model.safetensors.index.json``; 140,000 tensors make 14 MiB.
    index_bytes: int = 64 * MIB
    #: Layers of one model; the largest published one has 132.
    blocks: int = 10_000
    #: Characters of a string from a file that are shown in a message.
    shown_characters: int = 200
    #: Items of an array from a file that are shown in a report.
    shown_items: int = 32
    #: Of one rule in one file; a rule tells of one cause, hardly ever of ten.
    findings_of_rule: int = 200
    #: Characters of one string in the JSON report: room for any message, not for a
    #: megabyte of template.
    report_characters: int = 4096
    #: How long the Hub may leave a request unanswered, retries included, before an audit
    #: goes on without it for good. With the 0.4 s of importing huggingface_hub below 3 s.
    hub_patience_seconds: float = 2.5
    #: A body may take longer than that: its bytes at this rate.
    hub_bytes_per_second: int = 512 * KIB
    #: Of one reference; one of 163 shards takes 330, redirects included.
    hub_requests: int = 4096
    hub_bytes: int = 512 * MIB
    hub_seconds: int = 600
    #: The Hub itself redirects once, a mirror once more.
    hub_redirects: int = 5
    #: First request for a safetensors file: 97 % of all headers are shorter, says
    #: huggingface_hub (hf_api.py, ``parse_safetensors_file_metadata``).
    hub_window_bytes: int = 100_000
    #: Shards whose headers are asked for at the same time, as many as huggingface_hub
    #: downloads; patience and rate hold for all of them together.
    hub_lanes: int = 8
    #: Description of a repository; 10,000 files take 2 MiB.
    hub_listing_bytes: int = 16 * MIB
    #: First range of a remote model: the header of 262,144 tokens and 514,906 merges takes
    #: 15 MiB. The request is closed where the header ends.
    remote_window_bytes: int = 16 * MIB
    #: How long a server may send nothing at all, and how long a file may take, to which
    #: what has come adds at this rate.
    remote_patience_seconds: float = 10
    remote_seconds: float = 30
    remote_bytes_per_second: int = 64 * KIB
    #: How long a file of a server far away takes before what came counts.
    remote_usual_seconds: float = 5
    #: How long all files of one repository or folder together may take beyond that and the
    #: time for what has come: a server that is dead isn't waited for once per file.
    remote_idle_seconds: float = 90
    #: Requests for one file, redirects included; two are usual.
    remote_requests: int = 64
    #: Of a process that asks file systems of fsspec's: s3fs takes 80 MiB, and a window in
    #: several copies.
    fsspec_memory_bytes: int = 1024 * MIB
    #: What may come in for a request there beyond the bytes that it asks for: a listing,
    #: of which 100,000 entries take 40 MiB, or the same once more after a broken connection.
    fsspec_excess_bytes: int = 64 * MIB
    #: Models of one repository, bucket or store; the largest ones that are published hold
    #: some hundreds.
    listed_models: int = 10_000
    #: Files and folders below one whose card lists quants, looked through for those; for
    #: each folder above once more, in 15 ms where the system knows them.
    listed_files: int = 10_000
    #: How often the same step is tried.
    remote_tries: int = 5
    #: Model card beside a file; the longest published ones are under 200 KiB.
    readme_bytes: int = MIB
    #: Read of ``settings.json`` of LM Studio, of which one path is wanted.
    store_settings_bytes: int = MIB
    #: A policy, which a person writes.
    policy_bytes: int = MIB
    #: Of a pattern of files in it: compiling one takes time that grows with its square. A
    #: file's name has 255 bytes at most.
    pattern_characters: int = 512
    #: An earlier report, of thousands of models perhaps.
    baseline_bytes: int = 256 * MIB
    #: How long either may take to come out of a shell's pipe, ``<(...)``.
    pipe_seconds: float = 30
    #: Address space of a llama.cpp that is asked about a file: a vocabulary, and the
    #: states, which it allocates even when told to allocate nothing.
    probe_memory_bytes: int = 8192 * MIB
    #: Of its process; a vocabulary of 262,144 tokens takes one.
    probe_seconds: int = 60
    #: What it may answer and complain of: a few lines, or the ids of our own texts.
    probe_output_bytes: int = 8 * MIB
    #: Address space of a process that runs a reference's tokenizer: one of 262,144 tokens
    #: and 514,906 merges takes 0.4 GiB.
    tokenizer_memory_bytes: int = 2048 * MIB
    #: Of that process; the same takes two.
    tokenizer_seconds: int = 20
    #: Added tokens that are looked at one by one; llama.cpp looks for each in each of
    #: them. Gemma 3 has 6,415, which takes 0.2 s.
    probed_tokens: int = 16_384
    #: What it may answer: pieces or ids of our own short texts.
    tokenizer_output_bytes: int = 8 * MIB
    #: Characters of a chat template that is parsed; the longest published one has 20,000.
    template_characters: int = MIB
    #: Operands inside operands that are looked into: each is a call inside a call.
    template_depth: int = 40
    #: Characters of a string that an expression without variables is worked out to.
    folded_characters: int = 10_000
    #: Above this length a repeated string isn't worked out.
    folded_product: int = 100_000
    #: Templates of one file or checkpoint that are parsed; four are real.
    templates: int = 64
    #: How long those of one file may take before no other of them is begun.
    templates_seconds: float = 2.0
    #: Address space of the process that parses and renders them; it starts with 20 MiB.
    template_memory_bytes: int = 256 * MIB
    #: CPU time that one template may take there; a published one takes 0.04.
    template_cpu_seconds: int = 1
    #: How long one may take in all, on a machine that has other things to do.
    template_seconds: float = 5.0
    #: Characters of one rendered prompt; ours are short, and schemas of tools repeat them.
    prompt_characters: int = 256 * KIB
    #: Bytes of one message from that process.
    template_answer_bytes: int = 4 * MIB


LIMITS = Limits()
