"""Problem codes of rendered and committed files."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import ProblemCode as Code

HYDRATION_CODES: Mapping[str, Code] = {
    "render-source": Code("A Render has helm, kustomize or both.", "Write one of them."),
    "render-chart": Code(
        "A chart is in the store, or served with version and digest.", "Write what the message names."
    ),
    "render-version": Code("A chart sees versions of Kubernetes and of APIs.", "Write one."),
    "render-variant": Code("Variants differ in name, and in values (helm) or overlay (kustomize).", "Correct it."),
    "render-path": Code("Paths start at the store's root and stay inside.", "Write apps/web."),
    "render-output": Code("The output must be a folder of its own.", "Choose another folder."),
    "render-inputs": Code(
        "A Render reads a folder that holds a Render.", "Keep what is rendered in folders of its own."
    ),
    "render-lock": Code("The lock of an output is not as the command writes it.", "Run reconciler hydrate."),
    "render-stale": Code(
        "Inputs changed since the output was made, or it was never made.", "Run reconciler hydrate, review, and commit."
    ),
    "render-edited": Code(
        "An output file was edited; the next run would undo it.",
        "Edit values, chart or overlay, or write an override policy, and run reconciler hydrate.",
    ),
    "render-variants-overlap": Code("Several variants match a cluster.", "Choose clusters that exclude each other."),
    "render-object-missing": Code(
        "A variant lacks an object of the base, which no override can remove.",
        "Turn it off in the base, and on in the variants that need it.",
    ),
    "render-union": Code(
        "Several variants have an object that the base lacks, and no single selector matches their clusters.",
        "Select these clusters by values of one label, or by name.",
    ),
    "render-identity": Code(
        "A variant has an object in another apiVersion than the base.",
        "Let all variants write one version, by kubeVersion and apiVersions.",
    ),
    "render-api-not-named": Code(
        "A chart asks for an API version that the store defines.", "Write it into spec.helm.apiVersions."
    ),
    "render-schema-remote": Code(
        "The schema for a chart's values is served elsewhere: helm renders without it.", "Check the values yourself."
    ),
    "render-served-unknown": Code(
        "The observations lack API versions of a cluster of the Render.", "Run reconciler observe while it answers."
    ),
    "render-served-differs": Code(
        "Clusters of a variant serve different API versions that its chart may ask for.",
        "Give them variants of their own, or write the API version into spec.helm.apiVersions.",
    ),
    "render-version-differs": Code(
        "Clusters of a Render run another version of Kubernetes than its chart sees.",
        "Write the oldest as spec.helm.kubeVersion.",
    ),
    "render-leave-out-unused": Code("An entry of leaveOut matches nothing.", "Correct it, or take it out."),
    "render-hook-dropped": Code(
        "Hooks for deletion and tests, and what no tool applies, are left out; of custom kinds they only come in turn.",
        "Do their work in another way.",
    ),
    "render-secret": Code(
        "Rendered files are committed, and a plain Secret would be readable.",
        "Let the chart refer to a Secret that exists, or write spec.secrets: age encrypts, leaveOut names its maker.",
    ),
    "render-not-deterministic": Code(
        "Two renders of the same inputs differ (random values, time, machine).", "Set the value in the values files."
    ),
    "render-failed": Code("helm or kustomize refused the inputs.", "Read what it says."),
    "render-refused": Code("The input would fetch or run something, or leads out of the store.", "Remove it."),
    "render-too-large": Code("An input or an output is beyond its limit.", "Render less."),
    "render-object": Code("What the tool wrote is no object that a store can hold.", "Mend the chart or overlay."),
    "render-scope-unknown": Code(
        "A kind without definition has no namespace in the output.",
        "Set metadata.namespace in the chart, or put the definition into the store.",
    ),
    "render-encrypted-differs": Code(
        "A variant has other ciphertext, which overrides may not touch.", "Use one Secret."
    ),
}
