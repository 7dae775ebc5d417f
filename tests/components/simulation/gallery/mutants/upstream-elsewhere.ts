/** Bugs of other controllers, of the kubelet and of the sidecars, each brought back; `docs/gallery.md` has their stories. */
import type { UpstreamMutant } from "../mutant.ts";

const persistentVolume = "packages/volumes/src/controllers/persistent-volume/";
const sidecars = "packages/sidecars/src/";
const cycles = "tests/components/sidecars/";
const node = "packages/volumes/src/node/";

export const upstreamElsewhere: readonly UpstreamMutant[] = [
  {
    name: "volumes-made-before-migration-are-not-handed-over",
    upstream: "kubernetes#79043",
    file: `${persistentVolume}annotations.ts`,
    find: "if (migration.isMigrationEnabledForPlugin(provisioner)) {",
    replace: "if (migration.isMigrationEnabledForPlugin(provisioner) && current !== undefined) {",
    rule: "C4",
    story:
      "a volume that in-tree code made is not marked when its plugin migrates, so CSI does not delete it",
    caughtBy: {
      file: `${cycles}changing-hands.test.ts`,
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  },
  {
    name: "a-lease-is-not-competed-for-again",
    upstream: "csi-lib-utils#66",
    file: "packages/kube/src/leader-election/leader-election.ts",
    find: `        if (!signal.aborted) this.#reportLost();
      }
      await this.#pause(signal);`,
    replace: `        if (!signal.aborted) this.#reportLost();
        return;
      }
      await this.#pause(signal);`,
    rule: "C8",
    story: "a replica that lost its lease while the API server was away never leads again",
    caughtBy: {
      file: "tests/components/kube/leader-election.test.ts",
      test: "a leader that is cut off ends before another begins, and comes back as a candidate",
    },
  },
  {
    name: "no-intent-before-create-volume",
    upstream: "external-provisioner#486",
    file: `${sidecars}provisioner/claims/decide-claim.ts`,
    find: '  if (storesIntent && !facts.intended && !work.isIntentStored) return { step: "storeIntent" };\n',
    replace: "  void storesIntent;\n",
    rule: "C4",
    story:
      "that a volume is being made is recorded nowhere; the provisioner dies and its claim is deleted meanwhile",
    caughtBy: { file: `${cycles}crash-points.exhaustive.test.ts`, test: "at once, ends well: 'provisioner'" },
  },
  {
    name: "a-volume-whose-name-is-taken-is-left",
    upstream: "external-provisioner#1469",
    file: `${sidecars}provisioner/claims/decide-claim.ts`,
    find: 'if (work.stored === "taken") {',
    replace: 'if (work.stored === "taken" && work.removal !== undefined) {',
    rule: "C4",
    story:
      "an old claim of the cache is provisioned once more; its object exists already, so the new disk has none",
    caughtBy: {
      file: `${sidecars}provisioner/leaks.test.ts`,
      test: "'another\\'s PersistentVolume gets the …'",
    },
  },
  {
    name: "a-migrated-volume-names-the-driver-as-its-provisioner",
    upstream: "external-provisioner#576",
    file: `${sidecars}provisioner/requests/completed-volume.ts`,
    find: "[provisionedByAnnotation]: prepared.provisioner,",
    replace: "[provisionedByAnnotation]: driver.name,",
    rule: "C4",
    story:
      "a volume of a migrated class says that the driver made it, so after the way back in-tree code does not delete it",
    caughtBy: {
      file: `${cycles}changing-hands.test.ts`,
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  },
  {
    name: "the-attachers-finalizer-stays-after-the-way-back",
    upstream: "external-attacher#294",
    file: `${sidecars}attacher/decide-volume-finalizer.ts`,
    find: "isDeleting(pv) || (isPVMigratable(pv) && pv.metadata?.annotations?.[migratedToAnnotation] !== driver);",
    replace: "isDeleting(pv);",
    rule: "C6",
    story: "after the way back the driver's attacher leaves its finalizer on the volume, and goes",
    caughtBy: {
      file: `${sidecars}attacher/attacher.test.ts`,
      test: "lets go of a volume that is no longer migrated, once nothing is attached",
    },
  },
  {
    name: "a-mount-does-not-wait-until-it-is-in-use",
    upstream: "kubernetes#28095",
    file: `${node}volume-manager/volume-manager.ts`,
    find: "isReportedInUse: (uniqueName) => this.#reported.has(uniqueName),",
    replace: "isReportedInUse: () => true,",
    rule: "C2",
    story:
      "a node mounts before its `volumesInUse` names the volume, so the controller may detach it meanwhile",
    caughtBy: {
      file: `${node}node-volumes.test.ts`,
      test: "is not mounted before the posted volumesInUse names it",
    },
  },
  {
    name: "a-deadline-ends-create-volume",
    upstream: "external-provisioner#131",
    file: `${sidecars}provisioner/create-outcome.ts`,
    find: 'if (!(error instanceof CsiCallError) || !error.answered) return "Background";',
    replace: 'if (!(error instanceof CsiCallError) || !error.answered) return "Finished";',
    rule: "C4",
    story: "a CreateVolume without an answer counts as one that has made nothing",
    caughtBy: {
      file: `${sidecars}provisioner/leaks.test.ts`,
      test: "'a claim deleted after an uncertain an…'",
    },
  },
  {
    name: "a-deleted-claim-is-given-up",
    upstream: "external-provisioner#311",
    file: `${sidecars}provisioner/claims/decide-claim.ts`,
    find: "if (!work.isAccounted) {",
    replace: 'if (!work.isAccounted && attempt?.lastAnswer === "final") {',
    rule: "C4",
    story: "a claim that is deleted during a CreateVolume is let go without a look at what was made",
    caughtBy: {
      file: `${sidecars}provisioner/leaks.test.ts`,
      test: "'a claim deleted after an uncertain an…'",
    },
  },
  {
    name: "a-volume-deleted-before-its-claim-loses-its-object",
    upstream: "external-provisioner#546",
    file: `${sidecars}provisioner/provisioner.ts`,
    find: "protectVolumes: options.protectVolumes ?? true,",
    replace: "protectVolumes: false,",
    rule: "C4",
    story: "an object that is deleted before its claim goes at once, and its disk stays",
    caughtBy: {
      file: `${cycles}changing-hands.test.ts`,
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  },
  {
    name: "a-disk-is-deleted-while-it-is-attached",
    upstream: "external-provisioner#176",
    file: `${sidecars}provisioner/volumes/decide-volume.ts`,
    find: "if (attachedTo !== undefined) {",
    replace: 'if (attachedTo === "") {',
    rule: "C3",
    story: "DeleteVolume is sent although a VolumeAttachment names the volume",
    caughtBy: {
      file: `${sidecars}provisioner/provisioner.test.ts`,
      test: "deletes disk and volume once released, but not while attached",
    },
  },
  {
    name: "a-disk-is-deleted-without-a-look-at-its-claim",
    upstream: "kubernetes#83177",
    file: `${persistentVolume}decide-deletion-step.ts`,
    find: "  return isReleased(volume, claim);",
    replace: "  return isReleased(volume, undefined) || claim !== undefined;",
    rule: "C3",
    story: "the disk of a volume is deleted by what a cache shows, whatever its claim is now",
    caughtBy: {
      file: `${persistentVolume}data-risks.test.ts`,
      test: "which shows its claim: it stays",
    },
  },
  {
    name: "migrated-volumes-are-not-the-provisioners",
    upstream: "kubernetes#77102",
    file: `${sidecars}provisioner/volume-goal.ts`,
    find: "return isOfOurPlugin(driver, pv) && isHandedOver;",
    replace: "return isOfOurPlugin(driver, pv) && isHandedOver && provisionedBy === driver.name;",
    rule: "C4",
    story: "the provisioner deletes no volume whose annotation names the in-tree plugin",
    caughtBy: {
      file: `${cycles}changing-hands.test.ts`,
      test: "while a volume is being deleted: its disk goes with the claim, then the object",
    },
  },
  {
    name: "a-content-goes-while-its-snapshot-is-made",
    upstream: "external-snapshotter#134",
    file: `${sidecars}snapshotter/content-step.ts`,
    find: "annotations[beingCreatedAnnotation] === undefined && annotations[beingDeletedAnnotation] !== undefined",
    replace: "annotations[beingDeletedAnnotation] !== undefined",
    rule: "C4",
    story: "a VolumeSnapshot that is deleted during CreateSnapshot leaves the snapshot at the driver",
    caughtBy: {
      file: `${sidecars}snapshot-controller/stories.test.ts`,
      test: "that is deleted while its outcome is uncertain, is found and deleted",
    },
  },
  {
    name: "the-data-file-goes-before-the-volume-is-unstaged",
    upstream: "kubernetes#101911",
    file: "packages/volumes/src/plugins/csi/csi-device-mounter.ts",
    find: "      const { driverName, volumeHandle } = await stagedVolume(context, deviceMountPath, signal);\n",
    replace: `      const { driverName, volumeHandle } = await stagedVolume(context, deviceMountPath, signal);
      await host.removeFile(\`\${parentOf(deviceMountPath)}/vol_data.json\`);
`,
    rule: "C4",
    story: "vol_data.json is removed before NodeUnstageVolume has succeeded",
    caughtBy: {
      file: `${node}node-crashes.exhaustive.test.ts`,
      test: "a crossing 'to CSI' of a volume of mode 'Filesystem' survives a crash before any call",
    },
  },
  {
    name: "a-staged-volume-without-a-pod-is-not-found",
    upstream: "kubernetes#85476",
    file: `${node}volume-manager/leftovers/reconstruct-volumes.ts`,
    find: "for (const pvName of (await env.host.readDirectory(parent)) ?? []) {",
    replace: "for (const pvName of ((await env.host.readDirectory(parent)) ?? []).slice(0, 0)) {",
    rule: "C4",
    story: "an agent that stops between NodeUnpublishVolume and NodeUnstageVolume never unstages",
    caughtBy: {
      file: `${node}node-crashes.exhaustive.test.ts`,
      test: "a crossing 'to CSI' of a volume of mode 'Filesystem' survives a crash before any call",
    },
  },
  {
    name: "a-pod-that-cannot-be-resolved-loses-its-mounts",
    upstream: "kubernetes#120150",
    file: `${node}volume-manager/pods/node-pods.ts`,
    find: "return this.#over.has(podUID) || this.#pods.get(podUID)?.isResolved === true;",
    replace: "return this.#over.has(podUID) || this.#pods.has(podUID);",
    rule: "C3",
    story: "after a restart, volumes of running pods are unmounted while their claims cannot be read",
    caughtBy: {
      file: `${node}node-volumes.test.ts`,
      test: "is not unmounted under a running pod when a restarted agent cannot read the claim",
    },
  },
  {
    name: "a-claim-in-use-goes",
    upstream: "kubernetes#23886",
    file: "packages/volumes/src/controllers/protection/decide-claim-protection.ts",
    find: 'if (!isProtected || isUsed) return { step: "settle" };',
    replace:
      'if (!isProtected) return { step: "settle" };\n  if (isUsedLive !== undefined) return { step: "removeFinalizer", claim };',
    rule: "C3",
    story: "a claim that a pod uses is deleted, and its disk after it",
    caughtBy: {
      file: "packages/volumes/src/controllers/protection/protection-controllers.test.ts",
      test: "keeps a claim while a scheduled pod uses it, and its volume while it is bound",
    },
  },
  {
    name: "a-node-that-is-gone-ends-create-volume",
    upstream: "sig-storage-lib-external-provisioner#152",
    file: `${sidecars}provisioner/claims/claim-goal.ts`,
    find: 'if (claim.lastAnswer === "final") return { kind: "reschedule" };',
    replace: 'if (claim.lastAnswer !== "unknown") return { kind: "reschedule" };',
    rule: "C4",
    story:
      "the node of a claim is deleted after a CreateVolume without an answer; the claim gets another node, and a second disk",
    caughtBy: {
      file: `${sidecars}provisioner/leaks.test.ts`,
      test: "'a node deleted after an uncertain ans…'",
    },
  },
  {
    name: "a-snapshot-that-goes-ends-create-volume",
    upstream: "external-provisioner#1449",
    file: `${sidecars}provisioner/sources/snapshot-source.ts`,
    find: "if (isDeleting(snapshot) && !isIntended(claim))",
    replace: "if (isDeleting(snapshot))",
    rule: "C4",
    story:
      "a snapshot is deleted after a CreateVolume without an answer; the volume that was made is not asked for again",
    caughtBy: {
      file: `${sidecars}provisioner/sources.test.ts`,
      test: "comes to its end though the snapshot is deleted after a call without an answer",
    },
  },
  {
    name: "an-agent-changes-over-under-its-mounts",
    upstream: "kubernetes#98687",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: "if (current === wanted) return { inTreeName, path: wanted, heldBy: [] };",
    replace: 'if (inTreeName !== "") return { inTreeName, path: wanted, heldBy: [] };',
    rule: "C1",
    story:
      "a node whose gates are flipped changes over at once, although pods on it use volumes of the old path",
    caughtBy: {
      file: "packages/volumes/src/node/node-migration.test.ts",
      test: "are held back while a volume is mounted, reported, and take effect when the last is gone",
    },
  },
  {
    name: "a-volume-waits-for-an-attach-that-its-driver-does-without",
    upstream: "kubernetes#100445",
    file: "packages/volumes/src/node/volume-manager/desired-state.ts",
    find: "    if (entry?.attachable !== true) return;\n",
    replace: '    if (entry?.attachable !== true || uniqueName !== "") return;\n',
    rule: "C8",
    story:
      "a CSIDriver without attach comes after the pod, which waits for ever for its volume to be attached",
    caughtBy: {
      file: "packages/volumes/src/node/node-volumes.test.ts",
      test: "that waits for an attach is mounted once its driver needs none",
    },
  },
];
