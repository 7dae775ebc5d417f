/** Calls that carry secrets, made without them: they are either not needed, or missed in a way that says so. */
import type { Check, Need } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { mustEnd } from "../expect.ts";
import {
  makeUsableVolume,
  makeVolume,
  publishRequest,
  snapshotRequest,
  stageRequest,
  volumeRequest,
} from "../fixtures.ts";
import { canUseVolumes, controllerCan, nodeCan, nodeIdKnown } from "../needs.ts";

const secretsOf =
  (rpc: string): Need =>
  ({ options }) =>
    Object.keys(options.secrets[rpc] ?? {}).length > 0
      ? undefined
      : Object.keys(options.secrets).length === 0
        ? "no secrets are given (`secrets`)"
        : `no secrets of ${rpc} are given (\`secrets\`)`;

/** How a call may end when the secrets are missing that it was given elsewhere. */
const codes = ["OK", "INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED"] as const;

interface SecretCall {
  readonly rpc: string;
  readonly slug: string;
  readonly group: "controller" | "node";
  readonly needs: readonly Need[];
  readonly after: readonly string[];
  call(context: CheckContext): Promise<() => Promise<unknown>>;
}

const created = ["controller.create-volume.works"];
const calls: readonly SecretCall[] = [
  {
    rpc: "CreateVolume",
    slug: "create-volume",
    group: "controller",
    needs: [controllerCan("CREATE_DELETE_VOLUME")],
    after: created,
    call: async (context) => () => context.bareClients.controller.createVolume(volumeRequest(context)),
  },
  {
    rpc: "DeleteVolume",
    slug: "delete-volume",
    group: "controller",
    needs: [controllerCan("CREATE_DELETE_VOLUME")],
    after: created,
    async call(context) {
      const { volumeId } = await makeVolume(context);
      return () => context.bareClients.controller.deleteVolume({ volumeId });
    },
  },
  {
    rpc: "ControllerPublishVolume",
    slug: "publish-volume",
    group: "controller",
    needs: [controllerCan("CREATE_DELETE_VOLUME"), controllerCan("PUBLISH_UNPUBLISH_VOLUME"), nodeIdKnown],
    after: created,
    async call(context) {
      const volume = await makeVolume(context);
      return () => context.bareClients.controller.controllerPublishVolume(publishRequest(context, volume));
    },
  },
  {
    rpc: "CreateSnapshot",
    slug: "create-snapshot",
    group: "controller",
    needs: [controllerCan("CREATE_DELETE_VOLUME"), controllerCan("CREATE_DELETE_SNAPSHOT")],
    after: created,
    async call(context) {
      const { volumeId } = await makeVolume(context);
      return () => context.bareClients.controller.createSnapshot(snapshotRequest(context, volumeId));
    },
  },
  {
    rpc: "ControllerExpandVolume",
    slug: "expand-volume",
    group: "controller",
    needs: [controllerCan("CREATE_DELETE_VOLUME"), controllerCan("EXPAND_VOLUME")],
    after: created,
    async call(context) {
      const { volumeId } = await makeVolume(context);
      const capacityRange = { requiredBytes: context.options.expandSizeBytes };
      return () => context.bareClients.controller.controllerExpandVolume({ volumeId, capacityRange });
    },
  },
  {
    rpc: "NodeStageVolume",
    slug: "stage-volume",
    group: "node",
    needs: [canUseVolumes, nodeCan("STAGE_UNSTAGE_VOLUME")],
    after: [...created, "controller.publish-volume.works"],
    async call(context) {
      const volume = await makeUsableVolume(context);
      const stagingTargetPath = await context.stagingPath();
      return () => context.bareClients.node.nodeStageVolume(stageRequest({ ...volume, stagingTargetPath }));
    },
  },
];

/** The checks of missing secrets, in one service. */
export function secretChecks(group: "controller" | "node"): readonly Check[] {
  return calls
    .filter((each) => each.group === group)
    .map(({ rpc, slug, needs, after, call }) => ({
      id: `${group}.${slug}.without-secrets` as const,
      sentence: `${rpc} without its secrets works, or ends with a code that says they are missing`,
      spec: "Secrets Requirements",
      needs: [...needs, secretsOf(rpc)],
      after,
      async run(context: CheckContext) {
        await mustEnd(`${rpc} without secrets`, (await call(context))(), ...codes);
      },
    }));
}
