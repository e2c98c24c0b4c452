"""Running helm and kustomize for a person, contained, and the files that they read and wrote. Decides nothing."""
