/**
 * Who may do what: the sidecars run with the rights that the reference deployments give theirs
 * (external-attacher, external-provisioner, external-resizer and external-snapshotter, deploy/kubernetes), and with that
 * of the attacher to write events, which the CSI design asks of it. A call beyond them is refused, and its test fails.
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

const resizer: readonly Rule[] = [
  { apiGroups: core, resources: ["persistentvolumes"], verbs: [...read, "patch"] },
  { apiGroups: core, resources: ["persistentvolumeclaims", "pods"], verbs: read },
  { apiGroups: core, resources: ["persistentvolumeclaims/status"], verbs: ["patch"] },
  { apiGroups: core, resources: ["events"], verbs: ["create", "patch"] },
];

const snapshots = ["snapshot.storage.k8s.io"];
const groupSnapshots = ["groupsnapshot.storage.k8s.io"];

const snapshotter: readonly Rule[] = [
  { apiGroups: core, resources: ["events"], verbs: ["list", "watch", "create", "update", "patch"] },
  { apiGroups: core, resources: ["secrets"], verbs: ["get"] },
  { apiGroups: snapshots, resources: ["volumesnapshotclasses"], verbs: read },
  { apiGroups: snapshots, resources: ["volumesnapshotcontents"], verbs: [...read, "update", "patch"] },
  { apiGroups: snapshots, resources: ["volumesnapshotcontents/status"], verbs: ["update", "patch"] },
  { apiGroups: groupSnapshots, resources: ["volumegroupsnapshotclasses"], verbs: read },
  {
    apiGroups: groupSnapshots,
    resources: ["volumegroupsnapshotcontents"],
    verbs: [...read, "update", "patch"],
  },
  {
    apiGroups: groupSnapshots,
    resources: ["volumegroupsnapshotcontents/status"],
    verbs: ["update", "patch"],
  },
];

const snapshotController: readonly Rule[] = [
  { apiGroups: core, resources: ["persistentvolumes"], verbs: read },
  { apiGroups: core, resources: ["persistentvolumeclaims"], verbs: [...read, "update"] },
  { apiGroups: core, resources: ["events"], verbs: ["list", "watch", "create", "update", "patch"] },
  { apiGroups: snapshots, resources: ["volumesnapshotclasses"], verbs: read },
  {
    apiGroups: snapshots,
    resources: ["volumesnapshotcontents"],
    verbs: [...read, "create", "update", "delete", "patch"],
  },
  { apiGroups: snapshots, resources: ["volumesnapshotcontents/status"], verbs: ["patch"] },
  {
    apiGroups: snapshots,
    resources: ["volumesnapshots"],
    verbs: [...read, "create", "update", "patch", "delete"],
  },
  { apiGroups: snapshots, resources: ["volumesnapshots/status"], verbs: ["update", "patch"] },
  { apiGroups: groupSnapshots, resources: ["volumegroupsnapshotclasses"], verbs: read },
  {
    apiGroups: groupSnapshots,
    resources: ["volumegroupsnapshotcontents"],
    verbs: [...read, "create", "update", "delete", "patch"],
  },
  { apiGroups: groupSnapshots, resources: ["volumegroupsnapshotcontents/status"], verbs: ["patch"] },
  { apiGroups: groupSnapshots, resources: ["volumegroupsnapshots"], verbs: [...read, "update", "patch"] },
  { apiGroups: groupSnapshots, resources: ["volumegroupsnapshots/status"], verbs: ["update", "patch"] },
];

/** What the provisioner may besides where volumes are made from snapshots. */
const snapshotSources: readonly Rule[] = [
  { apiGroups: snapshots, resources: ["volumesnapshots"], verbs: [...read, "update"] },
  { apiGroups: snapshots, resources: ["volumesnapshotcontents"], verbs: ["get", "list"] },
];

const roles = {
  attacher,
  provisioner,
  resizer,
  snapshotter,
  "snapshot-controller": snapshotController,
  "snapshot-sources": snapshotSources,
} as const;

const rbac = "/apis/rbac.authorization.k8s.io/v1";

/** Grants a user the rights of these sidecars. */
export async function grant(
  kubernetes: ControlPlane,
  user: string,
  ...sidecars: readonly (keyof typeof roles)[]
): Promise<void> {
  for (const sidecar of sidecars) {
    const name = `external-${sidecar}-runner`;
    await create(kubernetes, "clusterroles", { metadata: { name }, rules: roles[sidecar] });
    await bindRole(kubernetes, user, name);
  }
}

/** Grants a user the rights of an existing cluster role. */
export async function bindRole(kubernetes: ControlPlane, user: string, role: string): Promise<void> {
  const apiGroup = "rbac.authorization.k8s.io";
  await create(kubernetes, "clusterrolebindings", {
    metadata: { name: `${role}:${user}` },
    subjects: [{ apiGroup, kind: "User", name: user }],
    roleRef: { apiGroup, kind: "ClusterRole", name: role },
  });
}

async function create(kubernetes: ControlPlane, plural: string, object: object): Promise<void> {
  const { status, body } = await kubernetes.call("POST", `${rbac}/${plural}`, object);
  if (status !== 201) throw new Error(`${plural}: ${status} ${body.message}`);
}
