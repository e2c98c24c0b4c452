"""API servers: requests, discovery, watches. Knows no policy."""

from reconciler.kube.answers import Column, PrintedRow, PrintedTable
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.kubeconfig import MemberConfig, Pem, load_members
from reconciler.kube.connection.risks import exec_plugin_of, kubeconfig_risks
from reconciler.kube.connection.session import open_session, proxy_of_environment
from reconciler.kube.discovery import Discovery
from reconciler.kube.kube_requests import ServedKind
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.kube.pod_shapes import NodeObject, Pod
from reconciler.kube.transport import TransportSettings
from reconciler.kube.watch_stream import Bookmark, WatchEvent
