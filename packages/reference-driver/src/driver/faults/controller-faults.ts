/** Faults of the controller's other RPCs of volumes: publish, validate, list, get, capacity, expand, modify. */
import {
  ControllerExpandVolumeResponseSchema,
  ControllerGetVolumeResponseSchema,
  CsiStatusError,
  create,
  GetCapacityResponseSchema,
  ListVolumesResponseSchema,
} from "@longshore/csi";
import { hasVolume } from "./create-faults.ts";
import { answersOn, answersWhen, around, asks, changes, type Fault, notTwice } from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";
import { losesEntries, repeatsEntries } from "./page-faults.ts";

const service = "controller";
const gibibyte = 1024n ** 3n;

const volumesListed = (
  change: (entries: Entries, nextToken: string) => { entries: Entries; nextToken: string },
) =>
  changes(service, "listVolumes", (answer) => {
    const { entries, nextToken } = create(ListVolumesResponseSchema, answer);
    return change(entries, nextToken);
  });
type Entries = ReturnType<typeof create<typeof ListVolumesResponseSchema>>["entries"];

const confirmed = (request: {
  readonly volumeContext: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, string>>;
}) => ({ confirmed: { volumeContext: request.volumeContext, parameters: request.parameters } });

/** By name. */
export const controllerFaults = {
  "publish-without-volume-id-accepted": answersWhen(
    service,
    "controllerPublishVolume",
    ({ volumeId }) => volumeId === "",
    () => ({}),
  ),
  "publish-without-node-id-accepted": answersWhen(
    service,
    "controllerPublishVolume",
    ({ volumeId, nodeId }) => volumeId !== "" && nodeId === "",
    () => ({}),
  ),
  "publish-without-capability-accepted": answersWhen(
    service,
    "controllerPublishVolume",
    ({ volumeId, nodeId, volumeCapability }) =>
      volumeId !== "" && nodeId !== "" && volumeCapability === undefined,
    () => ({}),
  ),
  "publish-unknown-volume-accepted": around(
    service,
    "controllerPublishVolume",
    () =>
      async ({ request, next, services }) => {
        const { volumeId, nodeId, volumeCapability } = request;
        const isComplete = volumeId !== "" && nodeId !== "" && volumeCapability !== undefined;
        return isComplete && !(await hasVolume(services, volumeId)) ? {} : next();
      },
  ),
  "publish-unknown-node-accepted": around(
    service,
    "controllerPublishVolume",
    () =>
      async ({ request, next, services }) => {
        try {
          return await next();
        } catch (error) {
          const isMissing = error instanceof CsiStatusError && error.code === "NOT_FOUND";
          if (!isMissing || !(await hasVolume(services, request.volumeId))) throw error;
          return {};
        }
      },
  ),
  "publish-not-idempotent": notTwice(service, "controllerPublishVolume", ({ volumeId }) => volumeId, {
    code: "ALREADY_EXISTS",
    undone: { service, rpc: "controllerUnpublishVolume", key: ({ volumeId }) => String(volumeId) },
  }),
  "publish-incompatible-repeat-accepted": answersOn(
    service,
    "controllerPublishVolume",
    "ALREADY_EXISTS",
    () => ({}),
  ),
  "unpublish-without-volume-id-accepted": answersWhen(
    service,
    "controllerUnpublishVolume",
    ({ volumeId }) => volumeId === "",
    () => ({}),
  ),
  "unpublish-not-idempotent": around(
    service,
    "controllerUnpublishVolume",
    () =>
      async ({ request, next, services, signal }) => {
        const { volumeId } = request;
        if (volumeId === "") return next();
        const found = await services.controller
          ?.controllerGetVolume?.({ $typeName: "csi.v1.ControllerGetVolumeRequest", volumeId }, signal)
          .catch(() => undefined);
        if ((found?.status?.publishedNodeIds?.length ?? 0) === 0) {
          throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} is not published`);
        }
        return next();
      },
  ),
  "unpublish-without-node-keeps": answersWhen(
    service,
    "controllerUnpublishVolume",
    ({ volumeId, nodeId }) => volumeId !== "" && nodeId === "",
    () => ({}),
  ),

  "validate-without-id-accepted": answersWhen(
    service,
    "validateVolumeCapabilities",
    ({ volumeId }) => volumeId === "",
    (request) => confirmed(request),
  ),
  "validate-without-capabilities-accepted": answersWhen(
    service,
    "validateVolumeCapabilities",
    ({ volumeId, volumeCapabilities }) => volumeId !== "" && volumeCapabilities.length === 0,
    (request) => confirmed(request),
  ),
  "validate-unknown-volume-accepted": answersOn(
    service,
    "validateVolumeCapabilities",
    "NOT_FOUND",
    ({ request }) => ({ confirmed: { volumeCapabilities: request.volumeCapabilities } }),
  ),
  "validate-confirms-unsupported": changes(service, "validateVolumeCapabilities", (_answer, request) => {
    const { volumeContext, volumeCapabilities, parameters, mutableParameters } = request;
    return { confirmed: { volumeContext, volumeCapabilities, parameters, mutableParameters } };
  }),
  "validate-never-confirms": changes(service, "validateVolumeCapabilities", () => ({ message: "who knows" })),

  "list-repeats-entries": repeatsEntries("listVolumes"),
  "list-loses-entries": losesEntries("listVolumes"),
  "list-never-ends": volumesListed((entries, nextToken) => {
    const last = entries.at(-1)?.volume?.volumeId ?? "vol-0";
    return { entries, nextToken: nextToken === "" ? last : nextToken };
  }),
  "list-ignores-max-entries": asks(service, "listVolumes", (request) =>
    request.maxEntries > 0 ? { ...request, maxEntries: 0 } : request,
  ),
  "list-negative-max-entries-accepted": asks(service, "listVolumes", (request) =>
    request.maxEntries < 0 ? { ...request, maxEntries: 0 } : request,
  ),
  "list-forgets-published-nodes": volumesListed((entries, nextToken) => ({
    entries: entries.map((entry) =>
      entry.status === undefined ? entry : { ...entry, status: { ...entry.status, publishedNodeIds: [] } },
    ),
    nextToken,
  })),
  "list-keeps-deleted-volumes": (services, context) => {
    const deleted = new Set<string>();
    const noting = around(service, "deleteVolume", () => async ({ request, next }) => {
      const answer = await next();
      deleted.add(request.volumeId);
      return answer;
    });
    const listing = changes(service, "listVolumes", (answer) => {
      const { entries, nextToken } = create(ListVolumesResponseSchema, answer);
      const ghosts = [...deleted].map((volumeId) => ({ volume: { volumeId, capacityBytes: gibibyte } }));
      return { entries: nextToken === "" ? [...entries, ...ghosts] : entries, nextToken };
    });
    return listing(noting(services, context), context);
  },
  "starting-token-garbage-accepted": answersOn(service, "listVolumes", "ABORTED", ({ request, next }) =>
    next({ ...request, startingToken: "" }),
  ),
  "get-volume-without-id-accepted": answersWhen(
    service,
    "controllerGetVolume",
    ({ volumeId }) => volumeId === "",
    () => ({ volume: { volumeId: "vol-0" }, status: {} }),
  ),
  "get-volume-missing-accepted": answersOn(service, "controllerGetVolume", "NOT_FOUND", ({ request }) => ({
    volume: { volumeId: request.volumeId },
    status: {},
  })),
  "get-volume-without-status": changes(service, "controllerGetVolume", (answer) => {
    const { volume } = create(ControllerGetVolumeResponseSchema, answer);
    return volume === undefined ? {} : { volume };
  }),
  "capacity-negative": changes(service, "getCapacity", (answer) => {
    return { ...create(GetCapacityResponseSchema, answer), availableCapacity: -gibibyte };
  }),
  "capacity-ignores-topology": asks(service, "getCapacity", (request) => {
    const { accessibleTopology: _where, ...anywhere } = request;
    return anywhere;
  }),

  "expand-without-id-accepted": answersWhen(
    service,
    "controllerExpandVolume",
    ({ volumeId }) => volumeId === "",
    ({ capacityRange }) => ({ capacityBytes: capacityRange?.requiredBytes ?? gibibyte }),
  ),
  "expand-without-range-accepted": answersWhen(
    service,
    "controllerExpandVolume",
    ({ volumeId, capacityRange }) => volumeId !== "" && capacityRange === undefined,
    () => ({ capacityBytes: gibibyte }),
  ),
  "expand-unknown-volume-accepted": answersOn(
    service,
    "controllerExpandVolume",
    "NOT_FOUND",
    ({ request }) => ({ capacityBytes: request.capacityRange?.requiredBytes ?? gibibyte }),
  ),
  "expand-below-required": changes(service, "controllerExpandVolume", (answer, { capacityRange }) => {
    const { requiredBytes = 0n } = capacityRange ?? {};
    const message = create(ControllerExpandVolumeResponseSchema, answer);
    return { ...message, capacityBytes: requiredBytes > 0n ? requiredBytes - 1n : message.capacityBytes };
  }),
  "expand-repeat-refused": around(
    service,
    "controllerExpandVolume",
    () =>
      async ({ request, next, services, signal }) => {
        const { volumeId, capacityRange } = request;
        const found = await services.controller
          ?.controllerGetVolume?.({ $typeName: "csi.v1.ControllerGetVolumeRequest", volumeId }, signal)
          .catch(() => undefined);
        const size = found?.volume?.capacityBytes ?? 0n;
        const answer = await next();
        if (capacityRange !== undefined && size >= capacityRange.requiredBytes) {
          throw new CsiStatusError("OUT_OF_RANGE", `volume ${volumeId} is as large as that already`);
        }
        return answer;
      },
  ),
  "expand-forgotten": around(service, "controllerExpandVolume", () => async ({ request, next, services }) => {
    const { volumeId, capacityRange } = request;
    const { requiredBytes = 0n, limitBytes = 0n } = capacityRange ?? {};
    const isPlain = requiredBytes > 0n && limitBytes === 0n && requiredBytes < 2n ** 45n;
    if (!isPlain || volumeId === "" || !(await hasVolume(services, volumeId))) return next();
    return { capacityBytes: requiredBytes, nodeExpansionRequired: true };
  }),
  "modify-without-id-accepted": answersWhen(
    service,
    "controllerModifyVolume",
    ({ volumeId }) => volumeId === "",
    () => ({}),
  ),
  "modify-unknown-volume-accepted": answersOn(service, "controllerModifyVolume", "NOT_FOUND", () => ({})),
  "modify-unknown-parameters-accepted": answersOn(
    service,
    "controllerModifyVolume",
    "INVALID_ARGUMENT",
    () => ({}),
    (_error, { volumeId, mutableParameters }) => volumeId !== "" && Object.keys(mutableParameters).length > 0,
  ),
  "modify-repeat-refused": notTwice(
    service,
    "controllerModifyVolume",
    ({ volumeId, mutableParameters }) => JSON.stringify([volumeId, mutableParameters]),
    { code: "ABORTED" },
  ),
} as const satisfies Partial<Record<FaultName, Fault>>;
