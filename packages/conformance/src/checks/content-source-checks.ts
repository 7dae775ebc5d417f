/** Volumes that are made from snapshots and from other volumes. */
import type { MessageInitShape, VolumeContentSourceSchema } from "@longshore/csi";
import type { Check } from "../check.ts";
import type { CheckContext } from "../check-context.ts";
import { must, mustAnswer, mustEnd } from "../expect.ts";
import { makeReadySnapshot, makeVolume, volumeOf, volumeRequest } from "../fixtures.ts";
import { controllerCan } from "../needs.ts";
import { refusals } from "./refusals.ts";

const made = ["controller.create-volume.works"];
const canCreate = controllerCan("CREATE_DELETE_VOLUME");

type Source = MessageInitShape<typeof VolumeContentSourceSchema>;

const fromVolume = (volumeId: string): Source => ({ type: { case: "volume", value: { volumeId } } });
const fromSnapshot = (snapshotId: string): Source => ({ type: { case: "snapshot", value: { snapshotId } } });

/** A new volume to make others from: itself, or a snapshot of it. */
const sources = {
  clone: {
    needs: [canCreate, controllerCan("CLONE_VOLUME")],
    after: made,
    word: "another volume",
    unknown: (context: CheckContext) => fromVolume(context.unknownId("volume")),
    make: async (context: CheckContext, requiredBytes: bigint) =>
      fromVolume((await makeVolume(context, { capacityRange: { requiredBytes } })).volumeId),
  },
  snapshot: {
    needs: [canCreate, controllerCan("CREATE_DELETE_SNAPSHOT")],
    after: [...made, "controller.create-snapshot.works"],
    word: "a snapshot",
    unknown: (context: CheckContext) => fromSnapshot(context.unknownId("snapshot")),
    async make(context: CheckContext, requiredBytes: bigint) {
      const { volumeId } = await makeVolume(context, { capacityRange: { requiredBytes } });
      return fromSnapshot((await makeReadySnapshot(context, volumeId)).snapshotId);
    },
  },
};

/** The id in a content source. */
function idIn(source: Source | undefined): string | undefined {
  if (source?.type?.case === "volume") return source.type.value.volumeId;
  return source?.type?.case === "snapshot" ? source.type.value.snapshotId : undefined;
}

/** The checks of both kinds of sources. */
export const contentSourceChecks: readonly Check[] = (["snapshot", "clone"] as const).flatMap((kind) => {
  const { needs, after, word, unknown, make } = sources[kind];
  const works = `controller.create-volume.from-${kind}` as const;
  return [
    {
      id: works,
      sentence: `a volume is made from ${word}, and says what it was made from`,
      spec: "CreateVolume",
      needs,
      after,
      async run(context: CheckContext) {
        const volumeContentSource = await make(context, context.options.volumeSizeBytes);
        const volume = await makeVolume(context, { volumeContentSource }, `CreateVolume from ${word}`);
        // A plugin that does not know the field ignores it: only the answer shows this.
        must(
          volume.contentSource?.type.case === volumeContentSource.type?.case &&
            idIn(volume.contentSource) === idIn(volumeContentSource),
          `the volume was asked for from ${word} and its content_source is ${idIn(volume.contentSource) ?? "not set"}`,
        );
      },
    },
    {
      id: `controller.create-volume.from-${kind}-idempotent` as const,
      sentence: `CreateVolume from ${word} repeated gives the same volume`,
      spec: "CreateVolume",
      needs,
      after: [...after, works],
      async run(context: CheckContext) {
        const request = volumeRequest(context, {
          volumeContentSource: await make(context, context.options.volumeSizeBytes),
        });
        const what = `CreateVolume from ${word}`;
        const first = volumeOf(await mustAnswer(what, context.controller.createVolume(request)));
        const again = volumeOf(
          await mustAnswer(`${what} repeated`, context.controller.createVolume(request)),
        );
        must(
          first.volumeId === again.volumeId,
          `${what} repeated gave volume ${again.volumeId} instead of ${first.volumeId}`,
        );
      },
    },
    {
      id: `controller.create-volume.from-${kind}-smaller` as const,
      sentence: `a volume from ${word} is not smaller than that: a limit below its size ends with OUT_OF_RANGE`,
      spec: "CreateVolume Errors",
      needs,
      after: [...after, works],
      async run(context: CheckContext) {
        const { volumeSizeBytes, expandSizeBytes } = context.options;
        const volumeContentSource = await make(context, expandSizeBytes);
        const capacityRange = { requiredBytes: volumeSizeBytes, limitBytes: expandSizeBytes - 1n };
        const request = volumeRequest(context, { volumeContentSource, capacityRange });
        await mustEnd(
          `CreateVolume of at most ${capacityRange.limitBytes} bytes from ${word} of ${expandSizeBytes}`,
          context.controller.createVolume(request),
          "OUT_OF_RANGE",
        );
      },
    },
    ...refusals("CreateVolume Errors", needs, [
      {
        id: `controller.create-volume.from-${kind}-unknown` as const,
        what: `CreateVolume from ${word} that does not exist`,
        codes: ["NOT_FOUND"],
        call: (context) => [
          () =>
            context.controller.createVolume(
              volumeRequest(context, { volumeContentSource: unknown(context) }),
            ),
        ],
      },
    ]),
  ] satisfies Check[];
});
