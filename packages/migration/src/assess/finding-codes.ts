/**
 * What an assessment can find: one entry a code. A code never changes its meaning and is never used for another one.
 * `docs/guides/assess.md` has a section for each; a test compares the two.
 */

/** How much a finding weighs. `unknown`: something could not be looked at, so that no verdict can be relied on. */
export type Severity = "error" | "warning" | "unknown" | "info";

/** One kind of finding. */
export interface FindingCode {
  /** `LS1` and three digits; the first of the three names the family. */
  readonly code: string;
  /** One line without the object. */
  readonly title: string;
  /** What its findings weigh, unless a rule says otherwise for one of them. */
  readonly severity: Severity;
  /** What happens if it is left as it is, and how that comes about. */
  readonly why: string;
  /** What to do, as a rule; the finding itself names objects and commands. */
  readonly remedy: string;
}

const codes = {
  // What could not be looked at.
  LS1001: {
    title: "objects of a kind may not be read, or could not be",
    severity: "unknown",
    why: "The rules that look at these objects had nothing to look at. That they found nothing says nothing.",
    remedy: "Grant the role that `longshore assess` can print, and run again.",
  },
  LS1002: {
    title: "a dump has no object of a kind that the verdict needs",
    severity: "unknown",
    why: "A dump without, for example, CSINodes comes from a cluster that has none, or from a command that left them out. The two look alike.",
    remedy: "Add the kind to the command that writes the dump, and run again.",
  },
  LS1003: {
    title: "the version of the cluster is not known",
    severity: "unknown",
    why: "Whether a plugin is redirected to its driver depends on the version. Without it every plugin that can be redirected is taken for one that is.",
    remedy: "Name the version of the cluster, and run again.",
  },
  LS1004: {
    title: "a part of the input cannot be read",
    severity: "unknown",
    why: "What that part holds was not looked at.",
    remedy: "Write the dump again; a file that was cut off ends in the middle of an object.",
  },
  LS1005: {
    title: "secrets were not looked for",
    severity: "info",
    why: "Volumes refer to Secrets. To list the names of Secrets takes the right to read them, so it is done on request only.",
    remedy: "Ask for them to be looked for, under an account that may list Secrets.",
  },
  LS1006: {
    title: "a suppression has expired",
    severity: "warning",
    why: "It says until when the finding may stay. After that day the finding counts again.",
    remedy: "Do what the finding asks for, or decide again: write a later day, with the reason.",
  },
  // Drivers.
  LS1101: {
    title: "the driver that takes a plugin over is registered on no node",
    severity: "error",
    why: "The cluster hands the plugin's volumes to its CSI driver. Without the driver nothing is attached, mounted, made or deleted.",
    remedy: "Deploy the driver, and wait until the CSINodes list it.",
  },
  LS1102: {
    title: "a node that may get volumes of a plugin lacks its driver",
    severity: "warning",
    why: "A pod with such a volume that is scheduled there does not start.",
    remedy: "Let the driver's DaemonSet run on the node, or keep these pods off it.",
  },
  LS1103: {
    title: "a volume is in use on a node without its driver",
    severity: "error",
    why: "A controller manager that starts while the driver is not registered on the node does not recognise the volume as attached through CSI. It may detach the disk while the pod writes to it, and data is lost.",
    remedy:
      "Do not restart or upgrade the control plane. Bring the driver back on the node first, or end the pod.",
  },
  LS1104: {
    title: "a driver that takes a plugin over has no CSIDriver object",
    severity: "warning",
    why: "Without it the cluster assumes that the driver attaches, takes no pod information and uses the default for fsGroup, whatever the driver's authors chose.",
    remedy: "Install the CSIDriver object that comes with the driver.",
  },
  LS1105: {
    title: "a pod uses a CSI volume on a node without its driver",
    severity: "warning",
    why: "The volume cannot be unmounted or mounted again there: the pod does not end, and its replacement does not start.",
    remedy: "Bring the driver back on the node.",
  },
  LS1106: {
    title: "a pod of a driver is not ready",
    severity: "warning",
    why: "While the driver's part on a node does not run, nothing is mounted or unmounted there, and a registration may be lost.",
    remedy: "See the logs of the pod's containers.",
  },
  // Volumes.
  LS1201: {
    title: "a volume cannot be translated to CSI",
    severity: "error",
    why: "Where its plugin is redirected, the volume cannot be attached, mounted or deleted.",
    remedy:
      "Make a new PersistentVolume for the disk with a source that can be translated. A PersistentVolume's source cannot be changed.",
  },
  LS1202: {
    title: "an in-tree plugin is still in use",
    severity: "info",
    why: "Its volumes keep their in-tree form in the API for good, and need the driver for as long as they are there.",
    remedy:
      "Keep the driver deployed. `longshore convert` makes the volumes native ones of the driver, on the same disks.",
  },
  LS1203: {
    title: "a pod template describes an in-tree volume itself",
    severity: "info",
    why: "A volume in a pod's spec has no PersistentVolume: it cannot be expanded, snapshotted or limited to nodes that reach it.",
    remedy: "Make a claim of it: `longshore translate` does.",
  },
  LS1204: {
    title: "a volume in a pod's spec cannot be translated to CSI",
    severity: "error",
    why: "Where its plugin is redirected, the pod does not start.",
    remedy: "Correct the volume in the object that makes the pod.",
  },
  LS1205: {
    title: "a secret that the translated volume needs is not there",
    severity: "error",
    why: "The driver is called with the secret that the volume refers to. Where it is missing, the call is not made.",
    remedy: "Create the Secret in the namespace that the finding names.",
  },
  LS1206: {
    title: "no node has the topology that the translated volume asks for",
    severity: "error",
    why: "The pod that uses the volume cannot be scheduled, or its volume cannot be attached where it runs.",
    remedy:
      "Start the driver on the nodes of the volume's zone: it is what makes the labels. Compare the zone with the nodes' labels.",
  },
  LS1207: {
    title: "the driver refuses an access mode of a volume",
    severity: "warning",
    why: "The in-tree plugin did not look at the mode. Drivers of disks refuse to mount a file system for writing on several nodes.",
    remedy: "Make a new PersistentVolume with ReadWriteOnce for the disk, or use a shared file system.",
  },
  LS1208: {
    title: "a disk without the tags by which the driver's role may delete it",
    severity: "warning",
    why: "The managed role of the EBS driver deletes only disks with certain tags. A disk that was made by hand lacks them, so its deletion is refused.",
    remedy: "Tag the disk, widen the role, or set the volume's reclaim policy to Retain.",
  },
  LS1209: {
    title: "a pod's fsGroup is not applied to a volume any more",
    severity: "warning",
    why: "With the default policy of a CSIDriver the group is applied only to volumes with a file system type and no other mode than ReadWriteOnce. The in-tree plugin applied it in any case.",
    remedy:
      "Set `fsGroupPolicy: File` on the CSIDriver if the driver's authors allow it, or set the group in the file system once.",
  },
  LS1210: {
    title: "an RBD volume needs its cluster in the driver's configuration",
    severity: "warning",
    why: "The driver knows a Ceph cluster by an id. That of a translated volume is the MD5 of its monitors, which the driver's administrator has to enter.",
    remedy: "Add the id with these monitors to the driver's ConfigMap (`ceph-csi-config`).",
  },
  LS1211: {
    title: "the driver does not serve a feature of a volume",
    severity: "warning",
    why: "The volume can be translated, and its driver does not serve volumes of this form. It is not mounted.",
    remedy: "Make a new PersistentVolume without the feature.",
  },
  LS1212: {
    title: "the driver chooses the file system of a volume",
    severity: "info",
    why: "Through CSI the type of the file system is empty. It does not matter to a disk that is formatted already, and it does to the group of pods (fsGroup) and to disks that are blank.",
    remedy:
      "Nothing, if the driver's default is ext4 as well. Otherwise make a new PersistentVolume with `fsType`.",
  },
  LS1213: {
    title: "the namespace of an Azure Files secret is not written down",
    severity: "warning",
    why: "The plugin looks the secret up in the pod's namespace. The translation takes the claim's, and before Kubernetes 1.24 `default`.",
    remedy: "Have the secret in both namespaces.",
  },
  LS1214: {
    title: "a vSphere volume is not registered with its driver",
    severity: "warning",
    why: "The driver enters each disk in the vCenter's list of container volumes when it first uses it, and keeps that in a CnsVSphereVolumeMigration. That fails for disks that the vCenter does not find, with a vCenter before 7.0 update 2, and with too few rights.",
    remedy: "Deploy the driver with `csi-migration` on, and see the log of its syncer for the volume.",
  },
  LS1215: {
    title: "the secret of a Portworx volume does not reach the driver",
    severity: "warning",
    why: "Where the cluster uses Portworx security, the driver refuses calls without the secret. Releases of 1.31 before 1.31.6 and of 1.32 before 1.32.2 redirect the plugin and drop the secret.",
    remedy: "Upgrade to a later patch release, or keep the gate CSIMigrationPortworx off until then.",
  },
  LS1216: {
    title: "two PersistentVolumes stand for one disk",
    severity: "warning",
    why: "Each of them may be bound, attached and deleted without regard to the other: two pods then write to one disk, or the disk of one goes with the claim of the other. `longshore convert` leaves such volumes as they are.",
    remedy: "Set the policy of both to Retain, and delete the object that no claim is bound to.",
  },
  // Classes.
  LS1301: {
    title: "a StorageClass cannot be translated",
    severity: "error",
    why: "Claims of the class stay Pending where its plugin is redirected.",
    remedy: "Make a new class for the driver. A StorageClass's parameters cannot be changed.",
  },
  LS1302: {
    title: "parameters of a StorageClass mean something else to the driver",
    severity: "info",
    why: "The class is translated each time a volume is made. The finding shows what becomes of each parameter.",
    remedy: "Nothing, if the result is as desired. Otherwise make a new class for the driver.",
  },
  LS1303: {
    title: "the driver rejects a parameter of a StorageClass",
    severity: "error",
    why: "The plugin took the parameter. The driver refuses to make a volume with it, so claims of the class stay Pending.",
    remedy: "Make a new class for the driver, without the parameter.",
  },
  // Claims.
  LS1401: {
    title: "a claim waits for a provisioner that is not there",
    severity: "error",
    why: "The claim's class or annotation names a provisioner which no node has a driver for. Nothing makes the volume.",
    remedy: "Deploy the driver, or delete the claim and make it with another class.",
  },
  LS1402: {
    title: "a deleted claim is held by the finalizer of the provisioner",
    severity: "warning",
    why: "`longshore.dev/provisioning` stays until it is certain that no disk was left behind. Without the provisioner it stays for good.",
    remedy: "Start the provisioner of the claim's driver and see its events.",
  },
  LS1403: {
    title: "a snapshot belongs to a driver that is registered nowhere",
    severity: "warning",
    why: "Nothing restores or deletes the snapshot. Its finalizer holds the object, and that of a claim which is its source.",
    remedy: "Deploy the driver, or delete the snapshot at the provider and take the finalizers off.",
  },
  LS1404: {
    title: "a snapshot of an in-tree volume cannot be taken yet",
    severity: "warning",
    why: "Only CSI drivers take snapshots. The snapshot stays unready until the volume's plugin is redirected to its driver.",
    remedy: "Delete the VolumeSnapshot, or carry the plugin across first.",
  },
  // Attachments.
  LS1501: {
    title: "a VolumeAttachment names a node that is not there",
    severity: "warning",
    why: "The disk may still be attached to a machine that the cluster has forgotten. Until the attachment is gone no other node gets it.",
    remedy: "Make certain that the machine is gone, then delete the VolumeAttachment.",
  },
  LS1502: {
    title: "a VolumeAttachment names a PersistentVolume that is not there",
    severity: "warning",
    why: "The attacher cannot find out which disk to detach.",
    remedy: "Detach the disk at the provider, then take the attacher's finalizer off the VolumeAttachment.",
  },
  LS1503: {
    title: "a VolumeAttachment does not go",
    severity: "warning",
    why: "It was deleted more than six minutes ago and its finalizer is still there: the driver could not detach, or does not run.",
    remedy:
      "See the logs of the driver's controller and its attacher. Do not take the finalizer off while the disk may be attached.",
  },
  LS1504: {
    title: "a volume cannot be attached",
    severity: "warning",
    why: "The driver has answered with an error. Volumes that are redirected to it would fare alike.",
    remedy: "See the logs of the driver's controller.",
  },
  LS1505: {
    title: "an object is held by the finalizer of a driver that is registered nowhere",
    severity: "warning",
    why: "Only the attacher of that driver takes its finalizer off. The object cannot be deleted.",
    remedy: "Deploy the driver until the object is gone, or detach by hand and take the finalizer off.",
  },
  LS1506: {
    title: "a volume is attached to a node where no pod uses it",
    severity: "warning",
    why: "The attachment was left. The disk cannot be attached to another node, and counts for the limit of this one.",
    remedy:
      "See that nothing is mounted on the node, and whether the controller manager runs: it detaches what no pod uses. Then delete the VolumeAttachment.",
  },
  LS1507: {
    title: "a controller or a kubelet reports that a volume fails",
    severity: "warning",
    why: "What fails before an upgrade fails after it as well, and hides what the upgrade breaks.",
    remedy: "See to the cause that the event names before the upgrade.",
  },
  // Nodes.
  LS1601: {
    title: "a node says that a plugin is migrated, and has no driver for it",
    severity: "error",
    why: "The control plane attaches volumes of the plugin through CSI there, and the node cannot mount them.",
    remedy: "Bring the driver back on the node.",
  },
  LS1602: {
    title: "some nodes have crossed and others have not",
    severity: "warning",
    why: "A crossing is under way, or was left. The volumes of such a cluster are served by both ways.",
    remedy: "Finish the crossing node by node, or take it back: `longshore migrate`, `longshore rollback`.",
  },
  LS1603: {
    title: "a node runs a version that redirects a plugin, and does not say so",
    severity: "warning",
    why: "The attach/detach controller goes by the node's annotation. Without it the node's volumes are handled in-tree, where the plugin may not exist.",
    remedy:
      "Compare the feature gates of the kubelet with those of the control plane; restart the kubelet if they agree.",
  },
  LS1604: {
    title: "a node has more volumes than its driver allows",
    severity: "warning",
    why: "The limit of the in-tree plugin was another one, and volumes in pods count as well. A pod that is evicted from there finds no room to return.",
    remedy: "Spread the pods over more nodes before the upgrade.",
  },
  LS1605: {
    title: "a crossing has left a node cordoned",
    severity: "warning",
    why: "The crossing that set the mark has not ended. No pod is scheduled there.",
    remedy: "Run `longshore migrate` or `longshore rollback` with the same plugin to its end.",
  },
  LS1606: {
    title: "a node and the control plane do not agree on who attaches a volume",
    severity: "error",
    why: "The one attaches by the in-tree plugin and the other waits for the driver, or the other way round. The volume is not mounted, and may be attached twice. The control plane is to cross before the nodes and to go back after them, and each node while it is drained.",
    remedy:
      "Drain the node, wait until nothing of the plugin is attached there, and give kubelet and controller manager gates that fit.",
  },
  LS1607: {
    title: "a node lacks a label for the topology of its driver",
    severity: "warning",
    why: "The scheduler finds the nodes of a volume by their labels. A pod with a volume of such a topology is not scheduled there.",
    remedy: "Restart the driver's pod on the node: the kubelet writes the labels when the driver registers.",
  },
  LS1608: {
    title: "how many volumes nodes may have, before and after",
    severity: "info",
    why: "The in-tree limit is the provider's, and that of the driver may be lower, since it counts network interfaces and system disks.",
    remedy:
      "Compare the two. Where the room after is small, spread the pods over more nodes before the upgrade.",
  },
  // Upgrades.
  LS1701: {
    title: "a plugin is gone from this version, and no driver takes it over",
    severity: "error",
    why: "Kubernetes has removed the plugin without a translation. Its volumes cannot be mounted at that version.",
    remedy: "Copy the data to volumes of a CSI driver before the upgrade.",
  },
  LS1702: {
    title: "the upgrade redirects a plugin to its driver",
    severity: "info",
    why: "From the target version on the cluster hands the plugin's volumes to the CSI driver.",
    remedy: "Deploy the driver on every node before the upgrade.",
  },
  LS1801: {
    title: "a PodDisruptionBudget blocks the drain of a pod with in-tree volumes",
    severity: "warning",
    why: "Each node is drained before its volumes change over. A budget that allows no disruption keeps the drain from its end.",
    remedy: "Run more replicas, or relax the budget for the time of the upgrade.",
  },
} as const satisfies Readonly<Record<string, Omit<FindingCode, "code">>>;

/** A code of the table. */
export type Code = keyof typeof codes;

/** All codes, in order. */
export const findingCodes: readonly FindingCode[] = Object.entries(codes).map(([code, entry]) => ({
  code,
  ...entry,
}));

const byCode: ReadonlyMap<string, FindingCode> = new Map(findingCodes.map((entry) => [entry.code, entry]));

/** The entry of a code, in any case of its letters; undefined where there is none. */
export function findingCode(code: string): FindingCode | undefined {
  return byCode.get(code.toUpperCase());
}

/** Where a code is described, from the root of the repository. */
export function findingLink(code: string): string {
  return `docs/guides/assess.md#${code.toLowerCase()}`;
}
