"""Programs of others in bounds: git, sops, helm and kustomize. Independent of their purpose."""
