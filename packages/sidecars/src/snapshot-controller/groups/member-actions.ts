/** The writes for the members of a group, one small action each. */
import { type Actions, isAlreadyExists, type KubeEnv, refOf } from "@longshore/kube";
import { snapshotResources } from "@longshore/storage";
import type { MemberStep, ObservedGroup } from "./group-step.ts";

const { volumeSnapshots, volumeSnapshotContents } = snapshotResources;

/** The actions of {@link MemberStep}. */
export function memberActions({ kube }: KubeEnv): Actions<ObservedGroup, MemberStep> {
  return {
    async createMember({ snapshot }, observed, { signal }) {
      await unlessThere(kube.create(volumeSnapshots, snapshot, { signal }));
      return memberDone(observed);
    },
    async createMemberContent({ content }, observed, { signal }) {
      await unlessThere(kube.create(volumeSnapshotContents, content, { signal }));
      return memberDone(observed);
    },
    async storeMemberStatus({ content, status }, observed, { signal }) {
      const patch = { type: "merge", body: { status } } as const;
      await kube.patch(volumeSnapshotContents, refOf(content), patch, { signal, subresource: "status" });
      return memberDone(observed);
    },
    async bindMember({ snapshot, contentName }, observed, { signal }) {
      const status = { boundVolumeSnapshotContentName: contentName };
      const patch = { type: "merge", body: { status } } as const;
      await kube.patch(volumeSnapshots, refOf(snapshot), patch, { signal, subresource: "status" });
      return memberDone(observed);
    },
    async deleteMember({ member }, observed, { signal }) {
      await kube.delete(volumeSnapshots, refOf(member), { signal, uid: member.metadata.uid });
      return memberDone(observed);
    },
  };
}

function memberDone(observed: ObservedGroup): { readonly observed: ObservedGroup } {
  const { work } = observed;
  return { observed: { ...observed, work: { ...work, membersDone: (work.membersDone ?? 0) + 1 } } };
}

async function unlessThere(creation: Promise<unknown>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
