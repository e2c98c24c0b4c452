"""Applications and ApplicationSets of Argo CD as applications of a store."""

from reconciler.importers.argocd.read import read_argocd
