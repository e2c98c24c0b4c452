"""Meanings of the problem codes of files, YAML, templates and clusters."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

FILES: Mapping[str, Code] = {
    "file-unreadable": Code("File not readable", "The file is there and cannot be read.", "Look at its rights."),
    "folder-unreadable": Code("Folder not readable", "What is in it is unknown.", "Look at its rights."),
    "file-too-large": Code("File too large", "No file of a store is that large.", "Split it, or ignore it."),
    "not-a-file": Code("Not a file", "A pipe, a socket or a device.", "Take it out."),
    "name-not-utf-8": Code("Name not UTF-8", "The name of the file is no text.", "Rename it."),
    "not-utf-8": Code("Text not UTF-8", "The file is no text, or in another encoding.", "Save it as UTF-8."),
    "link-refused": Code(
        "Link refused", "A symbolic link leads out of the store, to nothing, or in a circle.", "Copy what it means."
    ),
    "lfs-pointer": Code("Git LFS pointer", "The file holds a pointer and not its content.", "Commit the content."),
    "submodule-skipped": Code(
        "Repository inside", "A submodule or nested repository is not read.", "Copy its files, or make it a store."
    ),
    "ignore-file-unreadable": Code(".reconcilerignore not readable", "What it ignores is unknown.", "Mend the file."),
    "ignore-pattern-refused": Code(
        "Illegal ignore pattern", "The line is not in gitignore syntax, or would take too long.", "Correct the line."
    ),
    "documents-skipped": Code(
        "Documents skipped",
        "Some have no apiVersion and kind: Helm values, kustomization files and the like.",
        "Nothing, if they are no resources; .reconcilerignore silences the hint.",
    ),
    "duplicate-identity": Code(
        "Same object twice",
        "Two documents have one kind, namespace and name. The first one counts; where nobody knows which was, neither.",
        "Keep one of them.",
    ),
    "secret-not-kept": Code(
        "Secret not kept",
        "After a restart without the store, its copy is in force, which holds no Secrets nor overrides.",
        "Mend the store; until then they stay as they are.",
    ),
    "file-emptied": Code(
        "File emptied",
        "A file of a directory had documents and has none now, as one that is being written.",
        "Write it again, or remove it if its documents are to go.",
    ),
    "file-displaced": Code(
        "Something else in its place",
        "Where the file was, or a folder above it, stands a folder, a file, a submodule or a link that cannot be "
        "followed. That deletes nothing; its last good content stays in force.",
        "Put the file back, or take out what stands in its place.",
    ),
    "file-gone-unproven": Code(
        "Gone while another is unreadable",
        "The file is gone, and a new one cannot be read that may have what it said. Its last good content stays in "
        "force.",
        "Mend the new file, or take it out; then what is gone is gone.",
    ),
    "internal-error": Code(
        "Fault of the program",
        "The program, or an interpreter that is installed with it, failed on this file, document, object or copy, "
        "or on a change of it. It stays as it is in the clusters, as if its file were broken; a change is looked at, "
        "since it may have been made, and tried again. Everything else goes on. The message names the place in the "
        "code and no value; the service logs the way there.",
        "Report it with the message. A change of the named document may lead around it.",
    ),
    "last-good-in-force": Code(
        "Last good content in force", "The file is broken, so what it said before still holds.", "Mend the file."
    ),
}

YAML: Mapping[str, Code] = {
    "yaml-syntax": Code("YAML syntax", "The text is no YAML.", "Look at the line; mind indentation and quotes."),
    "json-syntax": Code("JSON syntax", "The text is no JSON.", "Look at the line."),
    "not-an-object": Code("Not an object", "A document is a mapping; this is text or a list.", "Write a mapping."),
    "duplicate-key": Code("Key twice", "A mapping has the key twice; one value would be lost.", "Keep one of them."),
    "control-character": Code("Control character", "The text has a character that nobody sees.", "Take it out."),
    "bidi-control": Code(
        "Bidirectional control", "Characters that make text look other than it is read.", "Take them out."
    ),
    "lone-surrogate": Code("Half a character", "Half of a surrogate pair is no text.", "Correct the escape."),
    "too-deep": Code("Nested too deeply", "No resource is nested that deeply.", "Flatten it."),
    "too-many-nodes": Code("Too many values", "The document has more values than any resource.", "Split it."),
    "too-many-documents": Code("Too many documents", "A file has too many documents.", "Split the file."),
    "too-many-directives": Code("Too many directives", "YAML directives have no place in a store.", "Take them out."),
    "number-too-large": Code("Number too large", "Nobody can read the number exactly.", "Quote it if it is text."),
    "yaml-alias-explosion": Code("Aliases multiply", "Aliases of aliases grow without end.", "Write values out."),
    "yaml-alias-loop": Code("Alias of itself", "The value of an anchor contains itself.", "Take the alias out."),
    "yaml-key-not-a-string": Code("Key not a text", "JSON knows texts as keys only.", "Quote the key."),
    "yaml-surprising-key": Code(
        "Surprising key", "The key is read as another type than it looks, as by kubectl.", "Quote it."
    ),
    "yaml-surprising-value": Code(
        "Surprising value", "The value is read as another type than it looks, as by kubectl.", "Quote it if it is text."
    ),
    "yaml-merge": Code("Wrong merge", "The key << takes a mapping or a list of mappings.", "Write the fields out."),
    "yaml-merge-replaces": Code(
        "Merge replaces", "The key << does not merge nested mappings, it replaces them.", "Write the fields out."
    ),
    "yaml-not-finite": Code("Not a number", "JSON has no infinity and no NaN.", "Quote it if it is text."),
    "yaml-tag-mismatch": Code("Tag does not fit", "The value is not what its tag says.", "Take the tag out."),
}

TEMPLATES: Mapping[str, Code] = {
    "field-missing": Code("Missing field", "The API server would refuse the object.", "Add the field."),
    "name-missing": Code("No name", "An object or container of the store has a name.", "Add it."),
    "generate-name": Code("generateName", "An object of the store needs a fixed name.", "Write metadata.name."),
    "api-version-illegal": Code("Illegal apiVersion", "It is VERSION or GROUP/VERSION.", "Write v1 or apps/v1."),
    "kind-illegal": Code("Illegal kind", "It is no name of a kind.", "Write it as in Deployment."),
    "kind-refused": Code(
        "Kind refused", "The kind is computed, or steers another control plane.", "Take it out; the message says why."
    ),
    "namespace-illegal": Code("Illegal namespace", "Kubernetes does not accept the name.", "Correct it."),
    "annotation-illegal": Code("Illegal annotation", "Kubernetes does not accept the key.", "Use prefix/name or name."),
    "annotations-too-large": Code("Annotations too large", "Kubernetes takes 256 KiB in all.", "Shorten them."),
    "server-field": Code(
        "Server field",
        "The field belongs to a live object, or a controller of each cluster writes it. It is not sent.",
        "Take it out.",
    ),
    "exported-field": Code(
        "Field of an export",
        "The template was exported from a cluster and has a number that this cluster gave out. It is sent, since it "
        "may be meant.",
        "Take it out, and uid and resourceVersion with it.",
    ),
    "object-too-large": Code("Object too large", "A cluster does not store an object so large.", "Split it."),
    "data-key-illegal": Code("Illegal data key", "Keys are letters, digits, dash, dot and underscore.", "Rename it."),
    "base64-invalid": Code("Not base64", "Values of data are base64.", "Encode it, or use stringData of a Secret."),
    "selector-missing": Code("No selector", "The workload would be refused.", "Add spec.selector."),
    "selector-mismatch": Code(
        "Selector does not match", "The pods would not be the workload's own.", "Give the template the same labels."
    ),
    "containers-missing": Code("No containers", "A pod has at least one.", "Add one."),
    "container-name-duplicate": Code("Container name twice", "Names in a pod are unique.", "Rename one."),
    "value-and-value-from": Code("value and valueFrom", "A variable has one of them.", "Keep one."),
    "port-invalid": Code("Illegal port", "A port is 1 to 65535, or a name where allowed.", "Correct it."),
    "port-duplicate": Code(
        "Port twice", "The name, or port and protocol, stands twice.", "Take one out, or rename it."
    ),
    "quantity-invalid": Code("Illegal quantity", "It is no quantity of Kubernetes.", "Write it as in 500m or 1Gi."),
    "request-above-limit": Code("Request above limit", "The API server refuses it.", "Raise the limit."),
    "out-of-range": Code("Number out of range", "The field holds 32 bits without a sign.", "Write a smaller one."),
}

PLACEMENT: Mapping[str, Code] = {
    "no-cluster-fits": Code(
        "No cluster fits",
        "No cluster is a candidate; what is placed already stays.",
        "See `reconciler explain` for what each cluster lacks.",
    ),
    "not-enough-capacity": Code(
        "Not enough capacity",
        "Not all replicas find room; an earlier placement stays.",
        "Add capacity, or allow spec.placement.partial in the Fleet document.",
    ),
    "capacity-unknown": Code(
        "Capacity unknown",
        "Free capacity decides and is not known; an earlier placement stays.",
        "Give access to the cluster, or --observations of it.",
    ),
    "spread-constraint-unmet": Code(
        "Spread constraint unmet",
        "No choice of clusters meets the constraints; an earlier placement stays.",
        "Relax them, or add clusters.",
    ),
    "constrained-replicas-stay": Code(
        "Replicas that should leave stay",
        "Descheduling, failover or a person takes replicas away from a cluster, and no other one has room for them. "
        "They stay where they are, with or without a node.",
        "Add capacity elsewhere, or end what takes them away: `reconciler evict --undo`, or an edit of the placement.",
    ),
    "job-parts-stay": Code(
        "Part of a Job stays",
        "A cluster should lose its part of a divided Job, by an order, a cap or an edit. Completions are fixed when a "
        "Job is created, so they can only go to a cluster that has no part yet, and there is none that can take them.",
        "End the order (`reconciler evict --undo`), add a cluster, or give the Job another name to divide it anew.",
    ),
    "completions-lost": Code(
        "Completions run nowhere",
        "The parts of a divided Job have fewer completions than the template. Those of live parts cannot be changed.",
        "Give the Job another name to divide it anew, or add another Job for the rest.",
    ),
    "undecided": Code(
        "Not decided by this process",
        "It applies to a part of the clusters, and this rests on what the others hold. It is left as it is.",
        "Give it --observations of all clusters.",
    ),
    "runs-elsewhere": Code(
        "Runs in a cluster of another process",
        "It was placed there, where nobody can look from here, and must not run twice. It is not begun anywhere else.",
        "Give it another name to run it once more.",
    ),
    "waits-for-override": Code(
        "Waits for an override", "An override that dependentOverrides names is not there.", "Add it to the store."
    ),
}

CLUSTERS: Mapping[str, Code] = {
    "cluster-not-read": Code(
        "Cluster not read", "It cannot be reached or read; nothing is changed there.", "See `reconciler doctor`."
    ),
    "cluster-went-back": Code(
        "Cluster went back",
        "The versions of its objects are older than what was seen before, in several answers: a backup of its etcd was "
        "put back. What was known of it is forgotten, and all of it is looked at anew. It is told for a day.",
        "See what `status` lists there. What had been deleted and is back stays (`not-deleted`) until `reconciler "
        "journal rebuild --cluster NAME` has taken stock of the cluster; then it goes, as far as the guards let it.",
    ),
    "right-missing": Code(
        "Right missing",
        "Our credentials may not read something there; the message says what follows and which right it is.",
        "Apply the role that `reconciler doctor --rbac full` prints, or leave it so if that is meant.",
    ),
    "kind-not-read": Code(
        "Kind not read",
        "The cluster answers, and gives no usable answer about one kind, or serves it no more although something of it "
        "was applied there. Nothing of that kind is changed there; everything else goes on, and the kind is asked for "
        "again by itself.",
        "See to what the message names: the CustomResourceDefinition, its conversion webhook, or the APIService.",
    ),
    "scope-differs": Code(
        "Scope differs",
        "The cluster serves the kind in namespaces and the store has it in none, or the other way round. Nothing is "
        "made of it there.",
        "Write metadata.namespace as the CustomResourceDefinition of the cluster wants it, or mend that.",
    ),
    "fleet-held-elsewhere": Code(
        "Fleet held elsewhere",
        "A process with a copy of this journal was started later; this one writes nothing there.",
        "Stop one of the two. The one that is to go on may need `reconciler journal rebuild --takeover`.",
    ),
    "kind-not-served": Code(
        "Kind not served", "The cluster does not know the kind.", "Add its CustomResourceDefinition to the store."
    ),
    "object-not-read": Code(
        "Object not read",
        "It may not be read, or what its API server answers is no such object. Unknown is not absent: nothing is "
        "written.",
        "Give the right to read; where the message names a field, look at what stands between us and the API server.",
    ),
    "object-not-ours": Code(
        "Object not ours",
        "An object of that name exists and is not ours.",
        "Set conflictResolution: Overwrite in its policy to adopt it.",
    ),
    "object-let-go": Code(
        "Object let go",
        "Somebody took a mark of ours off the object, so that it is left alone: neither written nor deleted.",
        "Put back the mark that the message names, or set conflictResolution: Overwrite in its policy to adopt it.",
    ),
    "object-of-another-tool": Code(
        "Object of another tool",
        "It carries the mark of another GitOps tool or fleet, or another object controls it.",
        "Release it there (the how-to `coming-from-other-tools` says how for each tool), or write the name that the "
        "message says into the annotation fleet.reconciler/take-over of its template.",
    ),
    "marked-by-another-tool": Code(
        "Marked by another tool",
        "The object is ours and carries the mark of another GitOps tool, too: both may write it, and that tool may "
        "delete it.",
        "Have the tool let go of it (the how-to `coming-from-other-tools` says how), then take its mark off, or name "
        "the tool in fleet.reconciler/take-over of the template.",
    ),
    "template-of-another-tool": Code(
        "Template with the mark of another tool",
        "The tool whose mark the template carries would hold the objects for its own, and may delete them.",
        "Take the label or annotation out of the template.",
    ),
    "take-over-unknown": Code(
        "Unknown name to take over from",
        "fleet.reconciler/take-over names no tool that is known, no fleet and no object.",
        "Write the name as object-of-another-tool says it.",
    ),
    "namespace-not-ours": Code(
        "Namespace not ours",
        "It is used as it is, without the labels and annotations that its template in the store has.",
        "Nothing, or adopt it by a policy with `conflictResolution: Overwrite`.",
    ),
    "being-deleted": Code(
        "Being deleted",
        "Somebody deleted the object, and its finalizers keep it; a wanted one is made anew when it is gone.",
        "Nothing, or see who should do the finalizers' work.",
    ),
    "deletes-others": Code(
        "Deletes objects of others",
        "The deletion of a CustomResourceDefinition deletes all objects of its kind, that of a Namespace everything in "
        "it; the message says how many in this cluster are not ours, or are ours and would have stayed.",
        "Look at these objects before you confirm it, or keep it: `preserveResourcesOnDeletion: true` releases it.",
    ),
    "not-deleted": Code(
        "Not deleted",
        "The object is no longer wanted, and a proof that it is ours is missing; the message names which.",
        "Delete it by hand if it is ours.",
    ),
    "refused-by-api-server": Code(
        "Refused by the API server", "A dry run says that the update would be refused.", "Correct the template."
    ),
}

OBSERVATIONS: Mapping[str, Code] = {
    "not-observations": Code("No observations", "The file is no mapping of observations.", "Write it by `observe`."),
    "version-unknown": Code("Unknown version", "This program reads version 1.", "Write it by the same version."),
    "api-malformed": Code("Illegal API", "An entry of apis is VERSION/KIND or GROUP/VERSION/KIND.", "Correct it."),
    "given-twice": Code("Given twice", "A cluster, node or resource stands twice.", "Keep one."),
    "number-negative": Code("Negative number", "Counts are 0 or more.", "Correct it."),
    "quantity-malformed": Code("Illegal quantity", "It is no quantity of Kubernetes.", "Write it as in 500m or 1Gi."),
    "time-malformed": Code("Illegal time", "Times are RFC 3339.", "Write one as 2026-11-21T10:00:00Z."),
}

FURTHER_CODES: Mapping[str, Code] = {**FILES, **YAML, **TEMPLATES, **PLACEMENT, **CLUSTERS, **OBSERVATIONS}
"""Code to its explanation."""
