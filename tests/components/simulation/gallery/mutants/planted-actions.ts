/** Actions that leave something out. */
import type { Mutant } from "../mutant.ts";

const attachDetach = "packages/volumes/src/controllers/attach-detach/";
const scenes = "packages/simulation/src/one-path.test.ts";

export const actions: readonly Mutant[] = [
  {
    name: "crossing-does-not-wait-for-volumes",
    file: "packages/migration/src/crossing/node-crossing.ts",
    find: "return left.length === 0 ? undefined : volumesWait(this.#nodeName, left, items);",
    replace: "return left.length < 0 ? volumesWait(this.#nodeName, left, items) : undefined;",
    story: "a node is flipped while volumes of the plugin are attached to it",
    caughtBy: { file: scenes, test: "a detach that was reported as failed takes effect later" },
  },
  {
    name: "what-the-provider-lists-is-not-adopted",
    file: `${attachDetach}recover-unreported.ts`,
    find: "delete(plugin);\n      for (const attachment of listed) adopt(context, plugin, attachment);",
    replace: "delete(plugin);\n      void listed;",
    story: "in-tree attachments that no object records are left to no controller",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "finds an in-tree attachment that no object records",
    },
  },
  {
    name: "csi-does-not-wait-for-the-providers-list",
    file: `${attachDetach}recover-unreported.ts`,
    find: '      context.unlisted.set(plugin.pluginName, "");\n',
    replace: "      void mayHaveAttachments;\n",
    story: "CSI attaches before it is known what in-tree code has attached",
    caughtBy: {
      file: `${attachDetach}uncertain-volumes.test.ts`,
      test: "CSI attaches nothing of the plugin",
    },
  },
  {
    name: "a-change-to-csi-is-not-announced",
    file: "packages/volumes/src/node/migration/decide-node-migration-step.ts",
    find: 'if (wanted === "csi" && !left.isAnnounced) return { step: "announce", inTreeName };',
    replace: "void left.isAnnounced;",
    story: "the controller may begin an in-tree attach while the node changes over",
    caughtBy: { file: "packages/volumes/src/node/node-migration.test.ts" },
  },
  {
    name: "a-detach-is-not-known-to-be-tried",
    file: `${attachDetach}disks/detach-actions.ts`,
    find: "attachment.detachTried = true;",
    replace: "attachment.detachTried = false;",
    story: "a disk whose detach has failed counts as attached for sure",
    caughtBy: { file: `${attachDetach}after-failures.test.ts` },
  },
  {
    name: "a-failed-detach-does-not-list-the-volume-again",
    file: `${attachDetach}disks/detach-actions.ts`,
    find: "if (attachment !== undefined && !isWanted(attachment, desired)) actual.setReported(attachment, true);",
    replace: "void attachment;",
    story: "what stays attached after a failed detach is not in its node's status",
    caughtBy: {
      file: `${attachDetach}attach-detach-controller.test.ts`,
      test: "writes the node's status without the volume before it detaches",
    },
  },
  {
    name: "a-create-volume-under-way-is-not-remembered",
    file: "packages/sidecars/src/provisioner/claims/provision-actions.ts",
    find: "  memory.begin(key, { ...attempt, claim, prepared });\n",
    replace: "  void attempt;\n",
    story: "after an uncertain answer the provisioner does not know what it asked for",
    caughtBy: { file: "packages/sidecars/src/provisioner/leaks.test.ts" },
  },
  {
    name: "a-volume-is-deleted-by-its-name-alone",
    file: "packages/volumes/src/controllers/persistent-volume/deletion-controller.ts",
    find: "await env.kube.delete(persistentVolumes, refOf(volume), { signal, uid });",
    replace: "await env.kube.delete(persistentVolumes, refOf(volume), { signal });",
    story: "the object of a new volume goes that has the name of one whose disk was deleted",
    caughtBy: {
      file: "packages/volumes/src/controllers/persistent-volume/data-risks.test.ts",
      test: "and a volume that takes the name meanwhile keeps its object",
    },
  },
];
