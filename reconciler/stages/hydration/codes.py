"""Problem codes of rendered and committed files."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

HYDRATION_CODES: Mapping[str, Code] = {
    "render-source": Code("What is rendered", "A Render has one of helm and kustomize.", "Write one of them."),
    "render-chart": Code(
        "Which chart",
        "A chart stands in the store, or others serve it: then its version and the digest of its archive are required.",
        "Write what the message names.",
    ),
    "render-version": Code("Illegal version", "A chart sees versions of Kubernetes and of APIs.", "Write one."),
    "render-variant": Code(
        "What a variant is", "Variants differ in name, and in values (helm) or overlay (kustomize).", "Correct it."
    ),
    "render-path": Code(
        "Path of a Render", "Paths are from the root of the store and never lead out of it.", "Write apps/web."
    ),
    "render-output": Code(
        "Output among the inputs",
        "The output of a Render is a folder of its own, that is written anew each time.",
        "Choose another folder.",
    ),
    "render-inputs": Code(
        "A document among inputs",
        "A Render reads a folder that holds a Render, so that it is not clear what is a document of the store.",
        "Keep what is rendered in folders of its own.",
    ),
    "render-lock": Code(
        "Lock not readable", "The lock of an output is not as the command writes it.", "Run reconciler hydrate."
    ),
    "render-stale": Code(
        "Output out of date",
        "What an output is made from changed since, or it was never made.",
        "Run reconciler hydrate, look at what changed, and commit it.",
    ),
    "render-edited": Code(
        "Output edited",
        "A file of an output is not as the command wrote it; the next run would take the edit away.",
        "Edit values, chart or overlay, or write an override policy, and run reconciler hydrate.",
    ),
    "render-variants-overlap": Code(
        "Two variants for one cluster",
        "Several variants of a Render match a cluster, and it can have one of them.",
        "Choose clusters that exclude each other.",
    ),
    "render-object-missing": Code(
        "Object only in the base",
        "A variant lacks an object that the base has, and no override takes an object away.",
        "Turn it off in the base, and on in the variants that are to have it.",
    ),
    "render-union": Code(
        "Object in several variants",
        "Several variants have an object that the base lacks, and no single selector matches just their clusters.",
        "Select the clusters of these variants by values of one label, or by name.",
    ),
    "render-identity": Code(
        "Object in another version",
        "A variant writes an object in another apiVersion than the base; an override cannot change it.",
        "Let all variants write one version, by kubeVersion and apiVersions.",
    ),
    "render-hook-dropped": Code(
        "Hook left out", "Helm would run it during an installation; here nothing does.", "Do its work in another way."
    ),
    "render-secret": Code(
        "Secret in an output", "Rendered files are committed, and a Secret in them could be read by all who read them.",
        "Encrypt it with sops, or let the chart refer to a Secret that exists.",
    ),
    "render-not-deterministic": Code(
        "Not deterministic",
        "Two renders of the same inputs differ: random values, the time, or the machine are in them.",
        "Set the value in the values files.",
    ),
    "render-failed": Code("Tool failed", "helm or kustomize refused the inputs.", "Read what it says."),
    "render-refused": Code(
        "Input refused", "The input would fetch or run something, or leads out of the store.", "Take it out."
    ),
    "render-too-large": Code("Too large", "An input or an output is beyond its limit.", "Render less."),
    "render-object": Code(
        "Object not usable", "What the tool wrote is no object that a store can hold.", "Mend the chart or overlay."
    ),
    "render-scope-unknown": Code(
        "Namespaced or not",
        "A kind without a definition in the output says no namespace; it is left without one.",
        "Set metadata.namespace in the chart, or put the definition of the kind into the store.",
    ),
    "render-encrypted-differs": Code(
        "Encrypted object differs", "A variant has other ciphertext, which no override may touch.", "Use one Secret."
    ),
}  # fmt: skip
