"""Problem codes of dependencies and overrides."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

RENDER_CODES: Mapping[str, Code] = {
    "dependency-missing": Code(
        "Dependency not in the store",
        "A template whose policy sets propagateDeps, or one that travels along and makes a Secret, refers to an object "
        "that the store does not have and that nothing in the store makes.",
        "Add the object, make sure that every target cluster has it, or mark the reference as optional.",
    ),
    "reference-not-granted": Code(
        "Reference that is not granted",
        "A route or a Gateway refers to an object of another namespace, and no ReferenceGrant of that namespace lets "
        "it. Every cluster refuses such a reference, so the object does not travel along.",
        "Add a ReferenceGrant to the namespace that is referred to, or take the reference out.",
    ),
    "reference-does-not-travel": Code(
        "Reference that does not travel",
        "An override makes an object refer to a ConfigMap, a Secret or the like that does not go to that cluster. "
        "Dependencies follow what templates refer to, not what overrides add.",
        "Let a policy bring the object to the cluster, or make sure that it is there.",
    ),
    "override-path-missing": Code(
        "Override of a path that is not there",
        "An operation of an override needs a field or list item that the object does not have. The object is not "
        "written on that cluster and the copy there stays as it is.",
        "Correct the path, use add instead of replace, add the parent first, or narrow the policy's selectors.",
    ),
    "override-not-a-string": Code(
        "Override of something that is no text",
        "A predicate or fieldPath leads to a value that is no string.",
        "Let it lead to the image or the text itself.",
    ),
    "embedded-text-unreadable": Code(
        "Text of a fieldOverrider unreadable",
        "The field does not hold one document in the syntax that the fieldOverrider names.",
        "Correct the text, name the other syntax, or split the documents into several fields.",
    ),
    "image-illegal": Code(
        "No image reference",
        "An imageOverrider met an image that is none, or its value would make one that no cluster can pull.",
        "Correct the image or the value; the form is [registry/]repository[:tag][@digest].",
    ),
    "image-registry-appended": Code(
        "Registry run together",
        "Registry add appends its value to the registry that the image has, which gives another host name.",
        "Use replace to set another registry; begin the value with a dot, a colon or a slash to extend one.",
    ),
    "images-unknown": Code(
        "Images of an unknown kind",
        "An imageOverrider without predicate selects a kind of which it is not known where its images are.",
        "Give a predicate, or narrow the policy's selectors.",
    ),
}
