/** For a driver that attaches nothing: its attachments are reported attached at once, with no finalizer and no call. */
import {
  type Actions,
  resources,
  type Steps,
  type Stored,
  settled,
  type VolumeAttachment,
} from "@longshore/kube";
import type { AttachContext } from "./attach-context.ts";
import { decideTrivialAttach, type TrivialAttachStep } from "./decide-trivial-attach.ts";
import { observeAttachment } from "./observed-attachment.ts";

type Attachment = Stored<VolumeAttachment>;

/** The parts of the controller over the attachments of such a driver. */
export function trivialAttachSteps(context: AttachContext): Steps<Attachment, TrivialAttachStep> {
  return {
    observe: (name) => observeAttachment(context, name)?.attachment,
    decide: decideTrivialAttach,
    actions: trivialAttachActions(context),
  };
}

function trivialAttachActions({ env }: Pick<AttachContext, "env">): Actions<Attachment, TrivialAttachStep> {
  return {
    settle: () => settled,
    reportAttached: async (_, { metadata: { name } }, { signal }) => {
      const body = { status: { attached: true } };
      const options = { signal, subresource: "status" } as const;
      await env.kube.patch(resources.volumeAttachments, { name }, { type: "merge", body }, options);
      return settled;
    },
  };
}
