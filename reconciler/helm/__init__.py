"""helm and kustomize run in a sandbox, and the files that they read and wrote."""
