/**
 * Who may do what: the sidecars run with the rights that the reference deployments give theirs
 * (external-attacher and external-provisioner, deploy/kubernetes/rbac.yaml), and with that of the
 * attacher to write events, which the CSI design asks of it. A call beyond them is refused, and its test fails.
 */
import type { ControlPlane } from "./control-plane.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const core = [""];
const storage = ["storage.k8s.io"];
const read = ["get", "list", "watch"];

const attacher: readonly Rule[] = [
  { apiGroups: core, resources: ["persistentvolumes"], verbs: [...read, "patch"] },
  { apiGroups: storage, resources: ["csinodes"], verbs: read },
  { apiGroups: storage, resources: ["volumeattachments"], verbs: [...read, "patch"] },
  { apiGroups: storage, resources: ["volumeattachments/status"], verbs: ["patch"] },
  { apiGroups: core, resources: ["events"], verbs: ["create", "patch"] },
];

const provisioner: readonly Rule[] = [
  { apiGroups: core, resources: ["persistentvolumes"], verbs: [...read, "create", "patch", "delete"] },
  { apiGroups: core, resources: ["persistentvolumeclaims"], verbs: [...read, "update"] },
  { apiGroups: storage, resources: ["storageclasses", "csinodes", "volumeattachments"], verbs: read },
  { apiGroups: core, resources: ["nodes"], verbs: read },
  { apiGroups: core, resources: ["events"], verbs: ["list", "watch", "create", "update", "patch"] },
];

const roles = { attacher, provisioner } as const;

/** Gives a user the rights of these sidecars. */
export async function grant(
  kubernetes: ControlPlane,
  user: string,
  ...sidecars: readonly (keyof typeof roles)[]
): Promise<void> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  for (const sidecar of sidecars) {
    const name = `external-${sidecar}-runner`;
    const role = { metadata: { name }, rules: roles[sidecar] };
    const binding = {
      metadata: { name },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    };
    for (const [path, body] of [
      ["clusterroles", role],
      ["clusterrolebindings", binding],
    ] as const) {
      const { status, body: answer } = await kubernetes.call("POST", `${rbac}/${path}`, body);
      if (status !== 201) throw new Error(`${path} ${name}: ${status} ${answer.message}`);
    }
  }
}
