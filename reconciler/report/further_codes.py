"""Meanings of the problem codes of files, YAML, templates and clusters."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import ProblemCode as Code

FILES: Mapping[str, Code] = {
    "file-unreadable": Code("The file is there and cannot be read.", "Look at its rights."),
    "folder-unreadable": Code("Its content is unknown.", "Look at its rights."),
    "file-too-large": Code("The file is beyond the limit.", "Split it, or ignore it."),
    "not-a-file": Code("A pipe, a socket or a device.", "Remove it."),
    "name-not-utf-8": Code("The name of the file is no text.", "Rename it."),
    "not-utf-8": Code("The file is no text, or in another encoding.", "Save it as UTF-8."),
    "link-refused": Code("A symbolic link leads out of the store, to nothing, or in a circle.", "Copy what it means."),
    "lfs-pointer": Code("The file holds a pointer and not its content.", "Commit the content."),
    "submodule-skipped": Code("A submodule or nested repository is not read.", "Copy its files, or make it a store."),
    "file-not-read": Code("A document in a file of another ending.", "Let it end with .yaml, .yml or .json."),
    "ignore-file-unreadable": Code("What it ignores is unknown.", "Mend the file."),
    "ignore-pattern-refused": Code("The line is not in gitignore syntax, or would take too long.", "Correct the line."),
    "documents-skipped": Code(
        "Documents without apiVersion and kind (Helm values, kustomization files).",
        "Nothing, if they are no resources; .reconcilerignore silences the hint.",
    ),
    "duplicate-identity": Code(
        "Two documents have one kind, namespace and name. The earlier one counts; if unknown, neither.",
        "Keep one of them.",
    ),
    "secret-not-kept": Code(
        "After a restart without the store, its copy is active, which holds no Secrets or overrides.",
        "Mend the store; until then they stay as they are.",
    ),
    "file-emptied": Code(
        "A file of a directory lost all its documents, as if half written.",
        "Write it again, or remove it if its documents are to go.",
    ),
    "file-displaced": Code(
        "Where the file or its folder was, stands something else that cannot be followed. Nothing is "
        "deleted; its last good content stays active.",
        "Put the file back, or remove what stands in its place.",
    ),
    "file-gone-unproven": Code(
        "The file is gone, and an unreadable new file may have its content. Its last good content stays active.",
        "Mend or remove the new file.",
    ),
    "internal-error": Code(
        "The program or a plugin failed on this file, document, object or change. It stays as it is (a "
        "change is looked at, then retried); everything else goes on.",
        "Report it with the message and the log. Changing the document may help.",
    ),
    "last-good-in-force": Code("The file is broken; its last good content is active.", "Mend the file."),
}

YAML: Mapping[str, Code] = {
    "yaml-syntax": Code("The text is no YAML.", "Look at the line; mind indentation and quotes."),
    "json-syntax": Code("The text is no JSON.", "Look at the line."),
    "not-an-object": Code("A document is a mapping; this is text or a list.", "Write a mapping."),
    "duplicate-key": Code("A mapping has the key twice.", "Keep one of them."),
    "control-character": Code("The text has an invisible character.", "Remove it."),
    "bidi-control": Code("Bidirectional control characters make text look different.", "Take them."),
    "lone-surrogate": Code("Half of a surrogate pair is no text.", "Correct the escape."),
    "too-deep": Code("No resource is nested that deeply.", "Flatten it."),
    "too-many-nodes": Code("The document has more values than any resource.", "Split it."),
    "too-many-documents": Code("A file has too many documents.", "Split the file."),
    "too-many-directives": Code("YAML directives have no place in a store.", "Take them."),
    "number-too-large": Code("Nobody can read the number exactly.", "Quote it if it is text."),
    "yaml-alias-explosion": Code("Aliases of aliases grow without end.", "Write values out."),
    "yaml-alias-loop": Code("The value of an anchor contains itself.", "Remove the alias."),
    "yaml-key-not-a-string": Code("JSON knows texts as keys only.", "Quote the key."),
    "yaml-surprising-key": Code("The key is read as another type than it looks, as by kubectl.", "Quote it."),
    "yaml-surprising-value": Code(
        "The value is read as another type than it looks, as by kubectl.", "Quote it if it is text."
    ),
    "yaml-merge": Code("The key << takes a mapping or a list of mappings.", "Write the fields out."),
    "yaml-merge-replaces": Code(
        "The key << does not merge nested mappings, it replaces them.", "Write the fields out."
    ),
    "yaml-not-finite": Code("JSON has no infinity and no NaN.", "Quote it if it is text."),
    "yaml-tag-mismatch": Code("The value is not what its tag says.", "Remove the tag."),
}

TEMPLATES: Mapping[str, Code] = {
    "field-missing": Code("The API server would refuse the object.", "Add the field."),
    "name-missing": Code("An object or container of the store has a name.", "Add it."),
    "generate-name": Code("An object of the store needs a fixed name.", "Write metadata.name."),
    "api-version-illegal": Code("It is VERSION or GROUP/VERSION.", "Write v1 or apps/v1."),
    "kind-illegal": Code("It is no name of a kind.", "Write it as in Deployment."),
    "kind-refused": Code("The kind is computed, or steers another control plane.", "Remove it; the message says why."),
    "namespace-illegal": Code("Kubernetes does not accept the name.", "Correct it."),
    "annotation-illegal": Code("Kubernetes does not accept the key.", "Use prefix/name or name."),
    "annotations-too-large": Code("Kubernetes takes 256 KiB in all.", "Shorten them."),
    "server-field": Code("The field is written by the cluster and not sent.", "Remove it."),
    "exported-field": Code(
        "An exported template has a number of its old cluster. It is sent, since it may be meant.",
        "Remove it, with uid and resourceVersion.",
    ),
    "object-too-large": Code("A cluster does not store an object so large.", "Split it."),
    "data-key-illegal": Code("Keys are letters, digits, dash, dot and underscore.", "Rename it."),
    "base64-invalid": Code("Values of data are base64.", "Encode it, or use stringData of a Secret."),
    "selector-missing": Code("The workload would be refused.", "Add spec.selector."),
    "selector-mismatch": Code("The pods would not be the workload's own.", "Give the template the same labels."),
    "containers-missing": Code("A pod has at least one.", "Add one."),
    "container-name-duplicate": Code("Names in a pod are unique.", "Rename one."),
    "value-and-value-from": Code("A variable has one of them.", "Keep one."),
    "port-invalid": Code("A port is 1 to 65535, or a name where allowed.", "Correct it."),
    "port-duplicate": Code("The name, or port and protocol, stands twice.", "Take one out, or rename it."),
    "quantity-invalid": Code("It is no quantity of Kubernetes.", "Write it as in 500m or 1Gi."),
    "quantity-odd": Code("The quantity is legal, and its suffix surely a slip.", "Write it as in 100m cores or 128Mi."),
    "request-above-limit": Code("The API server refuses it.", "Raise the limit."),
    "out-of-range": Code("The field holds 32 bits without a sign.", "Write a smaller one."),
}

PLACEMENT: Mapping[str, Code] = {
    "no-cluster-fits": Code(
        "No cluster is a candidate; placed copies stay.", "See `reconciler explain` for what each cluster lacks."
    ),
    "not-enough-capacity": Code(
        "Not all replicas find room; an earlier placement stays.",
        "Add capacity, or allow spec.placement.partial in the Fleet document.",
    ),
    "capacity-unknown": Code(
        "Free capacity decides and is unknown; an earlier placement stays.",
        "Give access to the cluster, or --observations of it.",
    ),
    "spread-constraint-unmet": Code(
        "No choice of clusters meets the constraints; an earlier placement stays.", "Relax them, or add clusters."
    ),
    "constrained-replicas-stay": Code(
        "Descheduling, failover or a person takes replicas from a cluster, and no other has room. They stay.",
        "Add capacity elsewhere, or end the constraint: `reconciler evict --undo`, or an edit of the placement.",
    ),
    "job-parts-stay": Code(
        "A cluster should lose its part of a divided Job. Completions are immutable, and no cluster "
        "without a part can take it.",
        "End the order (`reconciler evict --undo`), add a cluster, or give the Job another name.",
    ),
    "cluster-in-no-policy": Code("A cluster is new, and no policy places anything there.", "Name it in a policy."),
    "url-of-two-hosts": Code(
        "A URL has a second `@`, or a slash before its `@`: readers differ about its host.",
        "Write `%40` or `%2F`.",
    ),
    "completions-lost": Code(
        "The parts of a divided Job have fewer completions than the template, and live ones are immutable.",
        "Give the Job another name, or add another Job for the rest.",
    ),
    "undecided": Code(
        "A process applies to a part of the clusters, and this depends on others. It stays there as it is.",
        "Place it as Duplicated over named clusters, or let one process apply to all of its clusters.",
    ),
    "runs-elsewhere": Code(
        "Another process's cluster has it, and it must not run twice. It is not started elsewhere.",
        "Give it another name to run it once more.",
    ),
    "waits-for-override": Code("An override that dependentOverrides names is not there.", "Add it to the store."),
}

CLUSTERS: Mapping[str, Code] = {
    "cluster-not-read": Code("It cannot be reached or read; nothing changes there.", "See `reconciler doctor`."),
    "cluster-went-back": Code(
        "Its objects are older than seen before, in several answers: etcd was restored from a backup. "
        "Everything in it is read anew. Reported for a day.",
        "Read `status`. Objects that had been deleted stay (`not-deleted`) until `reconciler journal "
        "rebuild --cluster NAME`; then they go, as far as the guards allow.",
    ),
    "confirmation-fits-nothing": Code(
        "A change confirms what it does not have: another digest, or an approval or pin of no commit.",
        "Write the digest that `diff` prints, or the commit that `status` shows, or take the confirmation out.",
    ),
    "right-missing": Code(
        "Our credentials lack a right; the message names it and its effect.",
        "Apply the role that `reconciler doctor --rbac full` prints, or leave it if meant.",
    ),
    "kind-not-read": Code(
        "The cluster answers, but not usably for this kind, or serves it no more. Nothing of it changes"
        " there; it is asked for again.",
        "See to what the message names: the CustomResourceDefinition, its conversion webhook, or the APIService.",
    ),
    "scope-differs": Code(
        "Store and cluster disagree whether the kind is namespaced. It is not written there.",
        "Set or remove metadata.namespace as the CustomResourceDefinition wants it, or mend that.",
    ),
    "fleet-held-elsewhere": Code(
        "A process with a copy of this journal was started later; this one writes nothing there.",
        "Stop one of them. The one that stays may need `reconciler journal rebuild --takeover`.",
    ),
    "kind-not-served": Code("The cluster does not know the kind.", "Add its CustomResourceDefinition to the store."),
    "object-not-read": Code(
        "It may not be read, or the answer is no such object. Nothing is written.",
        "Give the right to read; if the message names a field, look at proxies before the API server.",
    ),
    "object-not-ours": Code(
        "An object of that name exists and is not ours.", "Set conflictResolution: Overwrite in its policy to adopt it."
    ),
    "object-let-go": Code(
        "Somebody removed our mark: the object is neither written nor deleted.",
        "Restore the named mark, or set conflictResolution: Overwrite to adopt it.",
    ),
    "object-of-another-tool": Code(
        "It carries the mark of another tool or fleet, or another object controls it.",
        "Release it there (how-to `coming-from-other-tools`), or write the name of the message into "
        "fleet.reconciler/take-over of its template.",
    ),
    "marked-by-another-tool": Code(
        "Our object also carries another GitOps tool's mark: both may write it, and that tool may delete it.",
        "Have the tool let go (how-to `coming-from-other-tools`), then remove its mark, or name the "
        "tool in fleet.reconciler/take-over.",
    ),
    "template-of-another-tool": Code(
        "The tool whose mark the template carries may delete its objects.", "Remove the label or annotation."
    ),
    "hook-illegal": Code(
        "A hook has a time, a weight and a consequence of failure.", "Write one that the message names."
    ),
    "directive-refused": Code(
        "The object says to another tool what cannot be kept to here.", "Do as the table of marks says."
    ),
    "directive-dropped": Code("What the object says to another tool has no effect here.", "Remove it, or accept that."),
    "directive-unknown": Code(
        "A label or annotation in the domain of another tool is in no table.", "Remove it if it is meant for the tool."
    ),
    "take-over-unknown": Code(
        "fleet.reconciler/take-over names no known tool, fleet or object.",
        "Write the name as object-of-another-tool says it.",
    ),
    "namespace-not-ours": Code(
        "It is used as it is, without the labels and annotations of its template.",
        "Nothing, or adopt it by a policy with `conflictResolution: Overwrite`.",
    ),
    "being-deleted": Code(
        "Somebody deleted the object, and finalizers keep it; a desired one is recreated afterwards.",
        "Nothing, or see who should remove the finalizers.",
    ),
    "deletes-others": Code(
        "Deleting a CustomResourceDefinition or Namespace deletes all of its kind or content; the "
        "message counts foreign objects and those that would have stayed.",
        "Look at them before you confirm, or release it with `preserveResourcesOnDeletion: true`.",
    ),
    "not-deleted": Code(
        "The object is unwanted, but a proof that it is ours is missing; the message names it.",
        "Delete it by hand if it is ours.",
    ),
    "refused-by-api-server": Code("A dry run says that the update would be refused.", "Correct the template."),
}

OBSERVATIONS: Mapping[str, Code] = {
    "not-observations": Code("The file is no mapping of observations.", "Write it by `observe`."),
    "version-unknown": Code("This program reads version 1.", "Write it by the same version."),
    "api-malformed": Code("An entry of apis is VERSION/KIND or GROUP/VERSION/KIND.", "Correct it."),
    "given-twice": Code("A cluster, node or resource stands twice.", "Keep one."),
    "number-negative": Code("Counts are 0 or more.", "Correct it."),
    "quantity-malformed": Code("It is no quantity of Kubernetes.", "Write it as in 500m or 1Gi."),
    "time-malformed": Code("Times are RFC 3339.", "Write one as 2026-11-21T10:00:00Z."),
}

FURTHER_CODES: Mapping[str, Code] = {**FILES, **YAML, **TEMPLATES, **PLACEMENT, **CLUSTERS, **OBSERVATIONS}
"""Code to its explanation."""
