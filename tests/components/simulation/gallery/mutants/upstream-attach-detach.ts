/** Bugs of the attach/detach controller of Kubernetes, each brought back; `docs/gallery.md` has their stories. */
import type { UpstreamMutant } from "../mutant.ts";

const attachDetach = "packages/volumes/src/controllers/attach-detach/";

export const upstreamAttachDetach: readonly UpstreamMutant[] = [
  {
    name: "a-pod-whose-driver-is-missing-wants-nothing",
    upstream: "kubernetes#115297",
    file: `${attachDetach}pods/decide-pod.ts`,
    find: "  const backend = backendOf(observed, nodeName, volume, migratable);\n",
    replace: `  const fresh = newDecision(observed, nodeName, migratable);
  if (fresh === unread) return unread;
  if (fresh.kind === "error") return { problem: fresh.message };
  const backend = backendOf(observed, nodeName, volume, migratable);
`,
    rule: "C2",
    story:
      "at the start of the controller a volume of a migrated plugin without its driver is dropped and detached in use",
    caughtBy: {
      file: `${attachDetach}after-failures.test.ts`,
      test: "a volume stays attached when the controller starts and the driver is not on the node",
    },
  },
  {
    name: "time-alone-forces-a-detach",
    upstream: "kubernetes#120741",
    file: `${attachDetach}disks/decide-detach.ts`,
    find: `  if (node?.isReady === true && !isCompat) return undefined;
  const isOver = forceDetachAfterMs !== undefined && nowMs - requestedAtMs > forceDetachAfterMs;`,
    replace: "  const isOver = nowMs - requestedAtMs > (forceDetachAfterMs ?? 360_000);",
    rule: "C2",
    story: "six minutes after the request a disk is detached although its node is Ready and uses it",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "detaches by force only from a node that is not Ready",
    },
  },
  {
    name: "attachments-of-migrated-volumes-are-not-recovered",
    upstream: "kubernetes#102097",
    file: `${attachDetach}recover-actual-state.ts`,
    find: "  const csi = spec?.persistentVolume?.spec?.csi;",
    replace: "  if (spec?.isMigrated === true) return;\n  const csi = spec?.persistentVolume?.spec?.csi;",
    rule: "C4",
    story:
      "a VolumeAttachment that is left over from an earlier controller stays, if its volume is of a migrated plugin",
    caughtBy: {
      file: `${attachDetach}data-risks.test.ts`,
      test: "does not go to a second node while the first, where it is uncertain, may use it",
    },
  },
  {
    name: "attachments-are-not-recovered",
    upstream: "kubernetes#77324",
    file: `${attachDetach}recover-actual-state.ts`,
    find: "  for (const attachment of context.caches.attachments.list()) recoverAttachment(context, attachment, known);",
    replace: "  void known;",
    rule: "C4",
    story: "VolumeAttachments that no node's status names are not looked at when the controller starts",
    caughtBy: {
      file: `${attachDetach}data-risks.test.ts`,
      test: "does not go to a second node while the first, where it is uncertain, may use it",
    },
  },
  {
    name: "a-migrated-attachment-is-recovered-under-its-in-tree-name",
    upstream: "cloud-provider-openstack#1531",
    file: `${attachDetach}recover-actual-state.ts`,
    find: `  if (known.has(attachment.metadata.name)) return;
  const spec = specOfAttachment(context, attachment);`,
    replace: `  const spec = specOfAttachment(context, attachment);
  if (spec?.isMigrated === true) {
    context.actual.put({
      nodeName,
      uniqueName: "kubernetes.io/in-tree/" + attachment.metadata.name,
      identity: "kubernetes.io/in-tree/" + attachment.metadata.name,
      pluginName: csiPluginName,
      volumeName: attachment.metadata.name,
      spec: undefined,
      devicePath: "",
      confirmed: false,
    });
    context.wakeDisk("kubernetes.io/in-tree/" + attachment.metadata.name);
    return;
  }`,
    rule: "C2",
    story:
      "after a restart of the controller the attachment of a migrated volume has a name that no pod asks for",
    caughtBy: {
      file: `${attachDetach}data-risks.test.ts`,
      test: "does not go to a second node while the first, where it is uncertain, may use it",
    },
  },
  {
    name: "an-in-tree-detach-leaves-the-attachment-object",
    upstream: "vsphere-csi-driver#2286",
    file: `${attachDetach}disks/detach-actions.ts`,
    find: "await env.kube.delete(resources.volumeAttachments, { name }, { signal });",
    replace: "await Promise.resolve();",
    rule: "C4",
    story: "after a way there and back a VolumeAttachment is left, and the volume cannot be deleted",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "an in-tree detach also deletes the VolumeAttachment that migration would have made",
    },
  },
  {
    name: "a-failed-attach-has-attached-nothing",
    upstream: "kubernetes#32727",
    file: `${attachDetach}disks/attach-actions.ts`,
    find: '        actual.put({ ...attachmentOf(volume), devicePath: "", confirmed: false });\n      }\n      return fail(operation, "Attach", message);',
    replace:
      '        const here = actual.get(volume.nodeName, volume.uniqueName);\n        if (here !== undefined) actual.remove(here);\n      }\n      return fail(operation, "Attach", message);',
    rule: "C4",
    story: "an attach that was answered with an error, and took effect later, is forgotten",
    caughtBy: {
      file: `${attachDetach}csi-attachments.test.ts`,
      test: "whose answer is lost is not taken for one that did not happen",
    },
  },
  {
    name: "what-may-be-attached-is-reported-after-a-failed-detach",
    upstream: "kubernetes#109951",
    file: `${attachDetach}actual-state.ts`,
    find: "if (attachment.reported === reported || (reported && !attachment.confirmed)) return;",
    replace: "if (attachment.reported === reported) return;",
    rule: "C2",
    story: "an attachment that is uncertain is in the node's status once its detach has failed",
    caughtBy: {
      file: `${attachDetach}after-failures.test.ts`,
      test: "a disk that may be attached is in no node's status, also when its detach fails",
    },
  },
  {
    name: "a-start-knows-nothing-of-what-is-attached",
    upstream: "kubernetes#34242",
    file: `${attachDetach}recover-actual-state.ts`,
    find: "for (const { name, devicePath } of node.status?.volumesAttached ?? []) {",
    replace: "for (const { name, devicePath } of (node.status?.volumesAttached ?? []).slice(0, 0)) {",
    rule: "C4",
    story: "pods that were deleted while no controller ran leave their disks attached",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "detaches by its name what no pod wants any more, CSI as well as in-tree",
    },
  },
  {
    name: "the-node-still-lists-what-is-detached",
    upstream: "kubernetes#27836",
    file: `${attachDetach}disks/decide-detach.ts`,
    find: "if (!attachment.isWritten && attachment.node !== undefined) {",
    replace: "if (nodeName === undefined) {",
    rule: "C2",
    story:
      "a detach starts before the node's status is written without the volume, so the node may mount it meanwhile",
    caughtBy: {
      file: `${attachDetach}data-risks.test.ts`,
      test: "nothing is detached before the write that takes it off the node's list has succeeded",
    },
  },
  {
    name: "what-a-failed-detach-has-done-is-not-doubted",
    upstream: "kubernetes#120571",
    file: `${attachDetach}disks/decide-detach.ts`,
    find: '  if (attachment.isDetachTried) return { step: "doubt", ...on };\n',
    replace: "",
    rule: "C8",
    story:
      "a disk whose detach was answered with an error, and took effect, is listed again for a new pod that waits for ever",
    caughtBy: {
      file: `${attachDetach}after-failures.test.ts`,
      test: "a disk that is detached although that failed is attached again for the next pod of the node",
    },
  },
  {
    name: "an-attach-begins-without-a-record",
    upstream: "kubernetes#44858",
    file: `${attachDetach}disks/decide-attach.ts`,
    find: 'if (present === undefined) return { step: "recordIntent", ...on };',
    replace: 'if (present === undefined) return { step: "attachInTree", ...on };',
    rule: "C4",
    story: "a controller that stops during an attach leaves no trace of it",
    caughtBy: {
      file: `${attachDetach}uncertain-volumes.test.ts`,
      test: "has what its status does not list, from before the attach until after the detach",
    },
  },
  {
    name: "a-detach-is-done-without-the-provider",
    upstream: "kubernetes#117091",
    file: "packages/volumes/src/plugins/disk/attach-disk.ts",
    find: "  await cloud.detachDisk(names.diskIdOf(volumeName), instance.instanceId, signal);",
    replace: "  void names;\n  void volumeName;",
    rule: "C4",
    story: "the in-tree plugin says that a disk is detached, and has not asked the provider",
    caughtBy: {
      file: `${attachDetach}data-risks.test.ts`,
      test: "is detached under one key: attach to one node and detach from the other never overlap",
    },
  },
  {
    name: "an-attach-of-a-driver-that-needs-none-any-more-is-forgotten",
    upstream: "kubernetes#129572",
    file: `${attachDetach}disks/attach-actions.ts`,
    find: "      actual.put({ ...attachmentOf(volume), devicePath, confirmed: true });",
    replace: `      const driver = volume.spec.persistentVolume?.spec?.csi?.driver ?? "";
      if (context.caches.csiDrivers.get(driver)?.spec.attachRequired === false) {
        forgetIntent(operation);
        return observeAgain;
      }
      actual.put({ ...attachmentOf(volume), devicePath, confirmed: true });`,
    rule: "C4",
    story:
      "a driver turns to `attachRequired: false` while a volume of it is attached, and the VolumeAttachment stays",
    caughtBy: {
      file: `${attachDetach}csi-attachments.test.ts`,
      test: "leaves no VolumeAttachment of an attach that was under way",
    },
  },
  {
    name: "csi-attaches-what-is-attached-in-tree-there",
    upstream: "kubernetes#107849",
    file: `${attachDetach}disks/decide-attach.ts`,
    find: `  const others = observed.attachments.filter((attachment) => attachment !== present);
  if (others.some((other) => other.nodeName === nodeName)) {
    return wait("it is attached to the node under another name: that attachment is detached first");
  }`,
    replace:
      "  const others = observed.attachments.filter((attachment) => attachment.nodeName !== nodeName);",
    rule: "C1",
    story: "a disk is attached to one node by both paths, and the node's status lists it twice",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "CSI attaches nothing to the flipped node while the in-tree detach fails",
    },
  },
];
