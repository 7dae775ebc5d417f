/**
 * The roles and bindings that every cluster begins with, as a table. Source: what kube-apiserver v1.20.2 stores when
 * it starts (auth/authorizer/rbac/bootstrappolicy), and the release notes for what came later.
 *
 * A rule is one line: verbs, then resources or paths, each list with commas; ` in GROUPS` where they are not of the
 * core group (written `core` in a list with other groups), ` named NAMES` for single objects, ` with BEHAVIOUR` for
 * rules of some versions only. `read` stands for get, list and watch, `write` for the other five verbs of the API.
 */

const writeEvents = "create,patch,update events in core,events.k8s.io";

/** ClusterRoles, but for those of controllers and those that are aggregated. */
export const clusterRoleTable: Readonly<Record<string, readonly string[]>> = {
  "cluster-admin": ["* * in *", "* *"],
  "system:aggregate-to-admin": [
    "create localsubjectaccessreviews in authorization.k8s.io",
    "read,write rolebindings,roles in rbac.authorization.k8s.io",
  ],
  "system:aggregate-to-edit": [
    "read pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
    "impersonate serviceaccounts",
    "write pods,pods/attach,pods/exec,pods/portforward,pods/proxy",
    "write configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy",
    "write endpoints with editorsWriteEndpoints",
    "write events with editorsWriteEvents",
    "create pods/eviction with editorsWriteEvents",
    "create serviceaccounts/token with editorsMintTokens",
    "write daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale in apps",
    "write horizontalpodautoscalers in autoscaling",
    "write cronjobs,jobs in batch",
    "write daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale in extensions",
    "write poddisruptionbudgets in policy",
    "write ingresses,networkpolicies in networking.k8s.io",
  ],
  "system:aggregate-to-view": [
    "read configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status",
    "read bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status",
    "read namespaces",
    "read endpointslices in discovery.k8s.io with viewersReadEndpointSlices",
    "read controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status in apps",
    "read horizontalpodautoscalers,horizontalpodautoscalers/status in autoscaling",
    "read cronjobs,cronjobs/status,jobs,jobs/status in batch",
    "read daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale in extensions",
    "read poddisruptionbudgets,poddisruptionbudgets/status in policy",
    "read ingresses,ingresses/status,networkpolicies in networking.k8s.io",
  ],
  "system:auth-delegator": [
    "create tokenreviews in authentication.k8s.io",
    "create subjectaccessreviews in authorization.k8s.io",
  ],
  "system:basic-user": [
    "create selfsubjectaccessreviews,selfsubjectrulesreviews in authorization.k8s.io",
    "create selfsubjectreviews in authentication.k8s.io with selfSubjectReviews",
  ],
  "system:certificates.k8s.io:certificatesigningrequests:nodeclient": [
    "create certificatesigningrequests/nodeclient in certificates.k8s.io",
  ],
  "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": [
    "create certificatesigningrequests/selfnodeclient in certificates.k8s.io",
  ],
  "system:certificates.k8s.io:kube-apiserver-client-approver": [
    "approve signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client",
  ],
  "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": [
    "approve signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client-kubelet",
  ],
  "system:certificates.k8s.io:kubelet-serving-approver": [
    "approve signers in certificates.k8s.io named kubernetes.io/kubelet-serving",
  ],
  "system:certificates.k8s.io:legacy-unknown-approver": [
    "approve signers in certificates.k8s.io named kubernetes.io/legacy-unknown",
  ],
  "system:discovery": [
    "get /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/",
  ],
  "system:heapster": ["read events,namespaces,nodes,pods", "read deployments in extensions"],
  "system:kube-aggregator": ["read endpoints,services"],
  "system:kube-controller-manager": [
    writeEvents,
    "create leases in coordination.k8s.io",
    "get,update leases in coordination.k8s.io named kube-controller-manager",
    "create endpoints",
    "get,update endpoints named kube-controller-manager",
    "create secrets,serviceaccounts",
    "delete secrets",
    "get configmaps,namespaces,secrets,serviceaccounts",
    "update secrets,serviceaccounts",
    "create tokenreviews in authentication.k8s.io",
    "create subjectaccessreviews in authorization.k8s.io",
    "list,watch * in *",
    "create serviceaccounts/token",
  ],
  "system:kube-dns": ["list,watch endpoints,services"],
  "system:kube-scheduler": [
    writeEvents,
    "create leases in coordination.k8s.io",
    "get,update leases in coordination.k8s.io named kube-scheduler",
    "create endpoints",
    "get,update endpoints named kube-scheduler",
    "read nodes",
    "delete,get,list,watch pods",
    "create bindings,pods/binding",
    "patch,update pods/status",
    "read replicationcontrollers,services",
    "read replicasets in apps,extensions",
    "read statefulsets in apps",
    "read poddisruptionbudgets in policy",
    "read persistentvolumeclaims,persistentvolumes",
    "create tokenreviews in authentication.k8s.io",
    "create subjectaccessreviews in authorization.k8s.io",
    "read csinodes in storage.k8s.io",
    "read csidrivers,csistoragecapacities in storage.k8s.io with schedulerReadsCapacity",
    "read namespaces with schedulerReadsCapacity",
  ],
  "system:kubelet-api-admin": [
    "read nodes",
    "proxy nodes",
    "* nodes/log,nodes/metrics,nodes/proxy,nodes/spec,nodes/stats",
  ],
  "system:monitoring": ["get /healthz,/healthz/*,/livez,/livez/*,/metrics,/readyz,/readyz/*"],
  "system:node": [
    "create tokenreviews in authentication.k8s.io",
    "create localsubjectaccessreviews,subjectaccessreviews in authorization.k8s.io",
    "read services",
    "create,get,list,watch nodes",
    "patch,update nodes/status",
    "patch,update nodes",
    "create,patch,update events",
    "read pods",
    "create,delete pods",
    "patch,update pods/status",
    "create pods/eviction",
    "read configmaps,secrets",
    "get persistentvolumeclaims,persistentvolumes",
    "get endpoints",
    "create,get,list,watch certificatesigningrequests in certificates.k8s.io",
    "create,delete,get,patch,update leases in coordination.k8s.io",
    "get volumeattachments in storage.k8s.io",
    "create serviceaccounts/token",
    "get,patch,update persistentvolumeclaims/status",
    "read csidrivers in storage.k8s.io",
    "create,delete,get,patch,update csinodes in storage.k8s.io",
    "read runtimeclasses in node.k8s.io",
  ],
  "system:node-bootstrapper": ["create,get,list,watch certificatesigningrequests in certificates.k8s.io"],
  "system:node-problem-detector": ["get nodes", "patch nodes/status", writeEvents],
  "system:node-proxier": [
    "list,watch endpoints,services",
    "read nodes",
    writeEvents,
    "list,watch endpointslices in discovery.k8s.io",
  ],
  "system:persistent-volume-provisioner": [
    "create,delete,get,list,watch persistentvolumes",
    "get,list,update,watch persistentvolumeclaims",
    "read storageclasses in storage.k8s.io",
    "watch events",
    writeEvents,
  ],
  "system:public-info-viewer": ["get /healthz,/livez,/readyz,/version,/version/"],
  "system:service-account-issuer-discovery": ["get /.well-known/openid-configuration,/openid/v1/jwks"],
  "system:volume-scheduler": [
    "get,list,patch,update,watch persistentvolumes",
    "read storageclasses in storage.k8s.io",
    "get,list,patch,update,watch persistentvolumeclaims",
  ],
};

/** ClusterRoles of the controllers, without `system:controller:`; each is bound to the account of that name in kube-system. */
export const controllerRoleTable: Readonly<Record<string, readonly string[]>> = {
  "attachdetach-controller": [
    "list,watch persistentvolumeclaims,persistentvolumes",
    "read nodes",
    "patch,update nodes/status",
    "list,watch pods",
    writeEvents,
    "create,delete,get,list,watch volumeattachments in storage.k8s.io",
    "read csidrivers in storage.k8s.io",
    "read csinodes in storage.k8s.io",
  ],
  "certificate-controller": [
    "delete,get,list,watch certificatesigningrequests in certificates.k8s.io",
    "update certificatesigningrequests/approval,certificatesigningrequests/status in certificates.k8s.io",
    "approve signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client-kubelet",
    "sign signers in certificates.k8s.io named kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown",
    "create subjectaccessreviews in authorization.k8s.io",
    writeEvents,
  ],
  "clusterrole-aggregation-controller": [
    "escalate,get,list,patch,update,watch clusterroles in rbac.authorization.k8s.io",
  ],
  "cronjob-controller": [
    "get,list,update,watch cronjobs in batch",
    "create,delete,get,list,patch,update,watch jobs in batch",
    "update cronjobs/status in batch",
    "update cronjobs/finalizers in batch",
    "delete,list pods",
    writeEvents,
  ],
  "daemon-set-controller": [
    "read daemonsets in apps,extensions",
    "update daemonsets/status in apps,extensions",
    "update daemonsets/finalizers in apps,extensions",
    "list,watch nodes",
    "create,delete,list,patch,watch pods",
    "create pods/binding",
    "create,delete,get,list,patch,update,watch controllerrevisions in apps",
    writeEvents,
  ],
  "deployment-controller": [
    "get,list,update,watch deployments in apps,extensions",
    "update deployments/status in apps,extensions",
    "update deployments/finalizers in apps,extensions",
    "create,delete,get,list,patch,update,watch replicasets in apps,extensions",
    "get,list,update,watch pods",
    writeEvents,
  ],
  "disruption-controller": [
    "read deployments in apps,extensions",
    "read replicasets in apps,extensions",
    "read replicationcontrollers",
    "read poddisruptionbudgets in policy",
    "read statefulsets in apps",
    "update poddisruptionbudgets/status in policy",
    "get */scale in *",
    writeEvents,
  ],
  "endpoint-controller": [
    "read pods,services",
    "create,delete,get,list,update endpoints",
    "create endpoints/restricted",
    writeEvents,
  ],
  "endpointslice-controller": [
    "read nodes,pods,services",
    "update services/finalizers",
    "create,delete,get,list,update endpointslices in discovery.k8s.io",
    writeEvents,
  ],
  "endpointslicemirroring-controller": [
    "read endpoints,services",
    "update services/finalizers",
    "update endpoints/finalizers",
    "create,delete,get,list,update endpointslices in discovery.k8s.io",
    writeEvents,
  ],
  "ephemeral-volume-controller": [
    "read pods with genericEphemeralVolumes",
    "update pods/finalizers with genericEphemeralVolumes",
    "create,get,list,watch persistentvolumeclaims with genericEphemeralVolumes",
    "create,patch,update events in core,events.k8s.io with genericEphemeralVolumes",
  ],
  "expand-controller": [
    "get,list,patch,update,watch persistentvolumes",
    "patch,update persistentvolumeclaims/status",
    "read persistentvolumeclaims",
    "read storageclasses in storage.k8s.io",
    "get endpoints,services",
    "get secrets",
    writeEvents,
  ],
  "generic-garbage-collector": ["delete,get,list,patch,update,watch * in *", writeEvents],
  "horizontal-pod-autoscaler": [
    "read horizontalpodautoscalers in autoscaling",
    "update horizontalpodautoscalers/status in autoscaling",
    "get,update */scale in *",
    "list pods",
    "get services/proxy named http:heapster:,https:heapster:",
    "list pods in metrics.k8s.io",
    "get,list * in custom.metrics.k8s.io",
    writeEvents,
  ],
  "job-controller": [
    "get,list,update,watch jobs in batch",
    "update jobs/status in batch",
    "update jobs/finalizers in batch",
    "create,delete,list,patch,watch pods",
    writeEvents,
  ],
  "namespace-controller": [
    "delete,get,list,watch namespaces",
    "update namespaces/finalize,namespaces/status",
    "delete,deletecollection,get,list * in *",
  ],
  "node-controller": [
    "delete,get,list,patch,update nodes",
    "patch,update nodes/status",
    "update pods/status",
    "delete,list pods",
    writeEvents,
  ],
  "persistent-volume-binder": [
    "create,delete,get,list,update,watch persistentvolumes",
    "update persistentvolumes/status",
    "get,list,update,watch persistentvolumeclaims",
    "update persistentvolumeclaims/status",
    "create,delete,get,list,watch pods",
    "read storageclasses in storage.k8s.io",
    "create,delete,get,update endpoints",
    "create,delete,get services",
    "get secrets",
    "get,list nodes",
    "watch events",
    writeEvents,
  ],
  "pod-garbage-collector": ["delete,list,watch pods", "get,list nodes"],
  "pv-protection-controller": ["get,list,update,watch persistentvolumes", writeEvents],
  "pvc-protection-controller": ["get,list,update,watch persistentvolumeclaims", "read pods", writeEvents],
  "replicaset-controller": [
    "get,list,update,watch replicasets in apps,extensions",
    "update replicasets/status in apps,extensions",
    "update replicasets/finalizers in apps,extensions",
    "create,delete,list,patch,watch pods",
    writeEvents,
  ],
  "replication-controller": [
    "get,list,update,watch replicationcontrollers",
    "update replicationcontrollers/status",
    "update replicationcontrollers/finalizers",
    "create,delete,list,patch,watch pods",
    writeEvents,
  ],
  "resourcequota-controller": ["list,watch * in *", "update resourcequotas/status", writeEvents],
  "root-ca-cert-publisher": ["create,update configmaps", writeEvents],
  "route-controller": ["list,watch nodes", "patch nodes/status", writeEvents],
  "service-account-controller": ["create serviceaccounts", writeEvents],
  "service-controller": ["read services", "patch,update services/status", "list,watch nodes", writeEvents],
  "statefulset-controller": [
    "list,watch pods",
    "read statefulsets in apps",
    "update statefulsets/status in apps",
    "update statefulsets/finalizers in apps",
    "create,delete,get,patch,update pods",
    "create,delete,get,list,patch,update,watch controllerrevisions in apps",
    "create,get persistentvolumeclaims",
    writeEvents,
  ],
  "ttl-controller": ["list,patch,update,watch nodes", writeEvents],
};

/** Roles, by namespace. */
export const roleTable: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "kube-public": {
    "system:controller:bootstrap-signer": [
      "read configmaps",
      "update configmaps named cluster-info",
      writeEvents,
    ],
  },
  "kube-system": {
    "extension-apiserver-authentication-reader": ["read configmaps named extension-apiserver-authentication"],
    "system::leader-locking-kube-controller-manager": [
      "watch configmaps",
      "get,update configmaps named kube-controller-manager",
    ],
    "system::leader-locking-kube-scheduler": [
      "watch configmaps",
      "get,update configmaps named kube-scheduler",
    ],
    "system:controller:bootstrap-signer": ["read secrets"],
    "system:controller:cloud-provider": ["create,get,list,watch configmaps"],
    "system:controller:token-cleaner": ["delete,get,list,watch secrets", writeEvents],
  },
};

/** ClusterRoles that aggregate all roles with the label `aggregate-to-…`, and the roles they are aggregated into. */
export const aggregatedRoleTable: Readonly<Record<string, { readonly into?: string }>> = {
  admin: {},
  edit: { into: "admin" },
  view: { into: "edit" },
};

/** The label `rbac.authorization.k8s.io/aggregate-to-…` of roles that go into others. */
export const aggregateTo: Readonly<Record<string, string>> = {
  "system:aggregate-to-admin": "admin",
  "system:aggregate-to-edit": "edit",
  "system:aggregate-to-view": "view",
};

/** ClusterRoleBindings, each of the role of its name; subjects as `User NAME`, `Group NAME` or `ServiceAccount NAMESPACE NAME`. */
export const clusterRoleBindingTable: Readonly<Record<string, readonly string[]>> = {
  "cluster-admin": ["Group system:masters"],
  "system:basic-user": ["Group system:authenticated"],
  "system:discovery": ["Group system:authenticated"],
  "system:kube-controller-manager": ["User system:kube-controller-manager"],
  "system:kube-dns": ["ServiceAccount kube-system kube-dns"],
  "system:kube-scheduler": ["User system:kube-scheduler"],
  "system:monitoring": ["Group system:monitoring"],
  // Nodes are the node authorizer's; the binding is kept so that it can be given subjects.
  "system:node": [],
  "system:node-proxier": ["User system:kube-proxy"],
  "system:public-info-viewer": ["Group system:authenticated", "Group system:unauthenticated"],
  "system:service-account-issuer-discovery": ["Group system:serviceaccounts"],
  "system:volume-scheduler": ["User system:kube-scheduler"],
};

/** RoleBindings, by namespace: the role, then as in {@link clusterRoleBindingTable}. */
export const roleBindingTable: Readonly<
  Record<string, Readonly<Record<string, readonly [role: string, ...subjects: string[]]>>>
> = {
  "kube-public": {
    "system:controller:bootstrap-signer": [
      "system:controller:bootstrap-signer",
      "ServiceAccount kube-system bootstrap-signer",
    ],
  },
  "kube-system": {
    "system::extension-apiserver-authentication-reader": [
      "extension-apiserver-authentication-reader",
      "User system:kube-controller-manager",
      "User system:kube-scheduler",
    ],
    "system::leader-locking-kube-controller-manager": [
      "system::leader-locking-kube-controller-manager",
      "User system:kube-controller-manager",
      "ServiceAccount kube-system kube-controller-manager",
    ],
    "system::leader-locking-kube-scheduler": [
      "system::leader-locking-kube-scheduler",
      "User system:kube-scheduler",
      "ServiceAccount kube-system kube-scheduler",
    ],
    "system:controller:bootstrap-signer": [
      "system:controller:bootstrap-signer",
      "ServiceAccount kube-system bootstrap-signer",
    ],
    "system:controller:cloud-provider": [
      "system:controller:cloud-provider",
      "ServiceAccount kube-system cloud-provider",
    ],
    "system:controller:token-cleaner": [
      "system:controller:token-cleaner",
      "ServiceAccount kube-system token-cleaner",
    ],
  },
};
