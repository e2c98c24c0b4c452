"""Problem codes of dependencies and overrides."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import ProblemCode as Code

RENDER_CODES: Mapping[str, Code] = {
    "dependency-missing": Code(
        "Something under propagateDeps, or with a made Secret, refers to an object that the store "
        "neither has nor makes.",
        "Add the object, provide it in every target cluster, or mark the reference as optional.",
    ),
    "reference-not-granted": Code(
        "A reference to another namespace lacks a ReferenceGrant; clusters refuse it, and the object does not travel.",
        "Add a ReferenceGrant to that namespace, or remove the reference.",
    ),
    "reference-does-not-travel": Code(
        "An override adds a reference to an object that does not go to that cluster. Dependencies "
        "follow templates, not overrides.",
        "Let a policy bring the object, or make sure that it is there.",
    ),
    "override-path-missing": Code(
        "An override needs a field or list item that is missing. The object is not written on that "
        "cluster; its copy stays.",
        "Correct the path, use add instead of replace, add the parent first, or narrow the policy's selectors.",
    ),
    "override-not-a-string": Code(
        "A predicate or fieldPath leads to something else than a string.",
        "Let it lead to the image or the text itself.",
    ),
    "embedded-text-unreadable": Code(
        "The field does not hold one document in the named syntax.",
        "Correct the text, name the other syntax, or split the documents into several fields.",
    ),
    "image-illegal": Code(
        "The image, or what an override makes of it, is no image reference, so that no node can pull it.",
        "Correct it; the form is [registry/]repository[:tag][@digest], in small letters.",
    ),
    "image-registry-appended": Code(
        "Registry add appends its value to the registry, which gives another host name.",
        "Use replace for another registry; to extend one, begin the value with a dot, colon or slash.",
    ),
    "images-unknown": Code(
        "An imageOverrider without predicate selects a kind whose images are unknown.",
        "Give a predicate, or narrow the policy's selectors.",
    ),
}
