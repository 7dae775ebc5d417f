/**
 * For every check of the suite a way to break the fake driver that this check sees. Others may see it as well
 * (`also`): a broken rule of one call often breaks another.
 */
import { CsiCallError, CsiStatusError, type InProcessHook } from "@longshore/csi";
import type { Fault } from "./fake-world.ts";
import {
  abortsCompany,
  afterCrash,
  afterwards,
  all,
  alters,
  altersStream,
  answers,
  around,
  aroundStream,
  confuses,
  counting,
  inCompany,
  type Loose,
  mistakes,
  notes,
  refuses,
  refusesCompany,
  refusesRepeats,
  streams,
} from "./faults.ts";

/** The faults of a stream of ranges, by the rule that they break. */
const metadataFaults = (slug: string, rpc: string): Record<string, FaultCase> => {
  const each = (change: (message: Loose) => Loose) =>
    altersStream(rpc, (messages) => messages.map((m) => ({ ...m, ...change(m) })));
  const tuples = (messages: Loose[]) => messages.flatMap((m) => m.blockMetadata);
  const resumes = ({ startingOffset }: Loose) => startingOffset > 0n && startingOffset < 2n ** 40n;
  const faults: Record<string, () => Fault> = {
    works: () => each(() => ({ blockMetadataType: 0 })),
    "shows-data": () => each(() => ({ blockMetadata: [] })),
    ordered: () => each((m) => ({ blockMetadata: [...m.blockMetadata].reverse() })),
    "within-capacity": () => each(() => ({ volumeCapacityBytes: 1n })),
    constant: () =>
      altersStream(rpc, (messages) =>
        messages.map((m, index) => ({ ...m, volumeCapacityBytes: m.volumeCapacityBytes + BigInt(index) })),
      ),
    "fixed-length": () =>
      altersStream(rpc, ([first, ...rest], request) => {
        if (request.startingOffset > 0n) return [first, ...rest];
        const [tuple, ...others] = first.blockMetadata;
        const half = { ...tuple, sizeBytes: tuple.sizeBytes / 2n };
        return [{ ...first, blockMetadata: [half, ...others] }, ...rest];
      }),
    "max-results": () =>
      altersStream(rpc, (messages, { maxResults }) =>
        maxResults === 1 ? [{ ...messages[0], blockMetadata: tuples(messages) }] : messages,
      ),
    "starting-offset": () =>
      aroundStream(
        rpc,
        (call) => (request, signal) =>
          call(resumes(request) ? { ...request, startingOffset: 0n } : request, signal),
      ),
    resumed: () =>
      altersStream(rpc, (messages, request) =>
        resumes(request) ? [{ ...messages[0], blockMetadata: tuples(messages).slice(0, -1) }] : messages,
      ),
    "beyond-end": () => streams(rpc, ({ startingOffset }) => startingOffset >= 2n ** 40n, someMetadata),
  };
  return Object.fromEntries(
    Object.entries(faults).map(([rule, fault]) => [`snapshot-metadata.${slug}.${rule}`, { fault }]),
  );
};
const someMetadata = { blockMetadataType: 1, volumeCapacityBytes: 2n ** 30n, blockMetadata: [] };
const allocated = "getMetadataAllocated";
const delta = "getMetadataDelta";

/** One planted fault. */
export interface FaultCase {
  /** Created for each run. */
  readonly fault: () => Fault;
  /** What goes wrong on the way, where no handler could do it. */
  readonly hook?: InProcessHook;
  /** Capabilities that the driver must lack for the check to apply. */
  readonly without?: readonly string[];
}

const always = () => true;
const missing = (field: string) => (request: Loose) =>
  request[field] === undefined || request[field].length === 0;
const unknown = (field: string) => (request: Loose) => String(request[field]).includes("-unknown-");
const unknownCapability = { type: { case: "rpc", value: { type: 0 } } };
const addCapability = (capability: Loose) => (answer: Loose) => ({
  ...answer,
  capabilities: [...answer.capabilities, capability],
});
const hides = (rpc: string, ...types: readonly number[]) =>
  alters(rpc, (answer) => ({
    capabilities: answer.capabilities.filter((c: Loose) => !types.includes(c.type.value.type)),
  }));
const changing = (rpc: string, field: string) => () => {
  let odd = false;
  return alters(rpc, (answer) => {
    odd = !odd;
    return odd ? answer : { ...answer, [field]: answer[field].slice(1) };
  });
};
const volume = (change: (volume: Loose, request: Loose) => Loose) =>
  alters("createVolume", (answer, request) => ({
    volume: { ...answer.volume, ...change(answer.volume, request) },
  }));
const aVolume = { volume: { volumeId: "vol-planted", capacityBytes: 2n ** 30n } };
const isName = (pattern: RegExp) => (request: Loose) => pattern.test(request.name);
const size = (request: Loose) => request.capacityRange?.requiredBytes ?? 0n;
const limit = (request: Loose) => request.capacityRange?.limitBytes ?? 0n;
const sourceOf = (request: Loose) => request.volumeContentSource?.type.case;
const modeOf = (request: Loose) => request.volumeCapability?.accessMode?.mode;
const zoneOf = (request: Loose) =>
  Object.values(request.accessibilityRequirements?.requisite[0]?.segments ?? {})[0];
const publishing = (rpc: string) => (request: Loose) =>
  `${request.volumeId} ${rpc === "stage" ? request.stagingTargetPath : request.targetPath}`;
const withoutSecrets = (rpc: string) => refuses(rpc, (request) => Object.keys(request.secrets).length === 0);
const aSnapshot = (request: Loose) => ({
  snapshot: { snapshotId: "snap-planted", sourceVolumeId: request.sourceVolumeId, readyToUse: true },
});
const entriesOf = (rpc: string, change: (entries: Loose[], request: Loose) => Loose[]) =>
  alters(rpc, (answer, request) => ({ ...answer, entries: change(answer.entries, request) }));
const group = (change: (group: Loose) => Loose) =>
  alters("createVolumeGroupSnapshot", (answer) => ({
    groupSnapshot: { ...answer.groupSnapshot, ...change(answer.groupSnapshot) },
  }));
const aGroup = { groupSnapshot: { groupSnapshotId: "group-planted" } };
/** From the second answer on: the suite uses the first. */
const nodeInfo = (change: Loose) => {
  let count = 0;
  return alters("nodeGetInfo", (answer) => (count++ === 0 ? answer : { ...answer, ...change }));
};
const dataFile = (volumeId: string) => `/data/${volumeId}/longshore-check`;
/** Loses what the call's volume holds. */
const loses = (rpc: string, when: (request: Loose) => boolean = always) =>
  afterwards(rpc, async (host, request, answer) => {
    const volumeId = request.volumeId ?? answer.volume.volumeId;
    if (when(request) && /^vol-\d+$/.test(volumeId)) await host.removeFile(dataFile(volumeId));
  });
/** Refuses a second path for volumes of one access mode. */
const onePath = (mode: number) => {
  const at = new Map<string, string>();
  return around("nodePublishVolume", (call) => async (request, signal) => {
    const first = at.get(request.volumeId) ?? request.targetPath;
    if (modeOf(request) === mode && first !== request.targetPath) {
      throw new CsiStatusError("INTERNAL", "planted");
    }
    const answer = await call(request, signal);
    at.set(request.volumeId, first);
    return answer;
  });
};
/** Serves a request although it must be refused. */
const serves = (rpc: string, when: (request: Loose) => boolean) =>
  around(rpc, (call) => async (request, signal) => {
    try {
      return await call(request, signal);
    } catch (error) {
      if (when(request)) return {};
      throw error;
    }
  });
/** Records the volumes that a call was served for. */
const volumesOf = (rpc: string) => (remember: (key: string) => void) =>
  notes(rpc, (request, answer) => remember(request.volumeId ?? answer.volume.volumeId));
const namesOf = (rpc: string) => (remember: (key: string) => void) =>
  notes(rpc, ({ name }) => remember(name));
const isVolume = (request: Loose) => /^vol-\d+$/.test(request.volumeId);
const stats = (change: Loose) => alters("nodeGetVolumeStats", (answer) => ({ ...answer, ...change }));
const sizesOf = (rpc: string, change: (bytes: bigint, request: Loose) => bigint) =>
  alters(rpc, (answer, request) => ({ ...answer, capacityBytes: change(answer.capacityBytes, request) }));

/** The faults by the check that each is for. */
export const faultTable: Readonly<Record<string, FaultCase>> = {
  // Identity
  "identity.plugin-info.name": {
    fault: () => alters("getPluginInfo", (answer) => ({ ...answer, name: "-not a name-" })),
  },
  "identity.plugin-info.vendor-version": {
    fault: () => alters("getPluginInfo", (answer) => ({ ...answer, vendorVersion: "" })),
  },
  "identity.plugin-info.same-answer": {
    fault: () => {
      let count = 0;
      return alters("getPluginInfo", (answer) => ({ ...answer, vendorVersion: `${count++}` }));
    },
  },
  "identity.plugin-capabilities.known": {
    fault: () =>
      alters("getPluginCapabilities", addCapability({ type: { case: "service", value: { type: 0 } } })),
  },
  "identity.plugin-capabilities.same-answer": { fault: changing("getPluginCapabilities", "capabilities") },
  "identity.plugin-capabilities.controller-service": {
    fault: () => refuses("controllerGetCapabilities", always, "UNIMPLEMENTED"),
  },
  "identity.plugin-capabilities.controller-declared": {
    fault: () =>
      alters("getPluginCapabilities", ({ capabilities }) => ({
        capabilities: capabilities.filter((c: Loose) => c.type.case !== "service" || c.type.value.type !== 1),
      })),
    without: ["VOLUME_EXPANSION_OFFLINE"],
  },
  "identity.plugin-capabilities.group-controller-service": {
    fault: () => refuses("groupControllerGetCapabilities", always, "UNIMPLEMENTED"),
  },
  "identity.plugin-capabilities.snapshot-metadata-service": {
    fault:
      () =>
      ({ snapshotMetadata: _, ...services }) =>
        services,
  },
  "identity.plugin-capabilities.snapshot-metadata-declared": {
    fault: () =>
      alters("getPluginCapabilities", ({ capabilities }) => ({
        capabilities: capabilities.filter((c: Loose) => c.type.case !== "service" || c.type.value.type !== 4),
      })),
  },
  "identity.plugin-capabilities.online-expansion": {
    fault: () => (services) => services,
    without: ["EXPAND_VOLUME", "VOLUME_EXPANSION_OFFLINE"],
  },
  "identity.plugin-capabilities.offline-expansion": {
    fault: () => (services) => services,
    without: ["EXPAND_VOLUME", "VOLUME_EXPANSION_ONLINE"],
  },
  "identity.probe.ready": { fault: () => refuses("probe", always) },

  // Controller: capabilities
  "controller.capabilities.known": {
    fault: () => alters("controllerGetCapabilities", addCapability(unknownCapability)),
  },
  "controller.capabilities.same-answer": { fault: changing("controllerGetCapabilities", "capabilities") },
  "controller.capabilities.consistent": {
    fault: () => hides("controllerGetCapabilities", 2),
  },
  "controller.capabilities.published-nodes-listed": {
    fault: () => hides("controllerGetCapabilities", 3, 12, 11),
  },
  "controller.capabilities.condition-reported": {
    fault: () => hides("controllerGetCapabilities", 3, 12, 10),
  },
  "controller.capabilities.undeclared-refused": {
    fault: () => all(hides("controllerGetCapabilities", 15), answers("getSnapshot", missing("snapshotId"))),
  },

  // CreateVolume
  "controller.create-volume.works": { fault: () => volume(() => ({ volumeId: "" })) },
  "controller.create-volume.name-required": {
    fault: () => mistakes("createVolume", (r) => (r.name === "" ? { ...r, name: "nameless" } : r)),
  },
  "controller.create-volume.capabilities-required": {
    fault: () => answers("createVolume", missing("volumeCapabilities"), aVolume),
  },
  "controller.create-volume.access-type-required": {
    fault: () =>
      answers(
        "createVolume",
        (r) => r.volumeCapabilities.some((c: Loose) => c.accessType.case === undefined),
        aVolume,
      ),
  },
  "controller.create-volume.access-mode-required": {
    fault: () =>
      answers("createVolume", (r) => r.volumeCapabilities.some((c: Loose) => !c.accessMode?.mode), aVolume),
  },
  "controller.create-volume.limit-below-required": {
    fault: () => answers("createVolume", (r) => limit(r) > 0n && limit(r) < size(r), aVolume),
  },
  "controller.create-volume.negative-size": {
    fault: () => answers("createVolume", (r) => limit(r) < 0n || size(r) < 0n, aVolume),
  },
  "controller.create-volume.unknown-topology": {
    fault: () => answers("createVolume", (r) => zoneOf(r) === "longshore-nowhere", aVolume),
  },
  "controller.create-volume.capacity": {
    fault: () => volume((v, r) => (limit(r) > 0n && size(r) === 0n ? { capacityBytes: limit(r) + 1n } : v)),
  },
  "controller.create-volume.without-size": {
    fault: () => refuses("createVolume", (r) => r.capacityRange === undefined, "INVALID_ARGUMENT"),
  },
  "controller.create-volume.huge-size": {
    fault: () => answers("createVolume", (r) => size(r) > 2n ** 60n, aVolume),
  },
  "controller.create-volume.long-name": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, name: r.name.slice(0, 127) })),
  },
  "controller.create-volume.unicode-name": {
    fault: () => refuses("createVolume", isName(/\p{Lo}/u), "INVALID_ARGUMENT"),
  },
  "controller.create-volume.path-like-name": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, name: r.name.replace(/^\.\.?\//, "") })),
  },
  "controller.create-volume.overlong-name": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, name: r.name.slice(0, 200) })),
  },
  "controller.create-volume.overlong-parameters": {
    fault: () => refuses("createVolume", (r) => JSON.stringify(r.parameters).length > 4096),
  },
  "controller.create-volume.control-characters": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, name: r.name.replaceAll(/\p{Cc}/gu, "") })),
  },
  "controller.create-volume.topology": {
    fault: () => volume(() => ({ accessibleTopology: [{ segments: { "topology.fake.csi/zone": "b" } }] })),
  },
  "controller.create-volume.no-topology": {
    fault: () => volume(() => ({ accessibleTopology: [{ segments: { "topology.fake.csi/zone": "b" } }] })),
    without: ["VOLUME_ACCESSIBILITY_CONSTRAINTS"],
  },
  "controller.create-volume.access-modes": {
    fault: () => refuses("createVolume", (r) => r.volumeCapabilities.length > 1),
  },
  "controller.create-volume.single-node-multi-writer": {
    fault: () =>
      refuses("createVolume", (r) => r.volumeCapabilities[0]?.accessMode?.mode === 7, "INVALID_ARGUMENT"),
  },
  "controller.create-volume.mutable-parameters": {
    fault: () => refuses("createVolume", (r) => "iops" in r.mutableParameters),
  },
  "controller.create-volume.unknown-mutable-parameters": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, mutableParameters: {} })),
  },
  "controller.create-volume.source-undeclared": {
    fault: () => mistakes("createVolume", (r) => ({ ...r, volumeContentSource: undefined })),
    without: ["CLONE_VOLUME", "CREATE_DELETE_SNAPSHOT"],
  },

  // DeleteVolume
  "controller.delete-volume.works": {
    fault: () => refuses("deleteVolume", (r) => r.volumeId.startsWith("vol-")),
  },
  "controller.delete-volume.id-required": { fault: () => answers("deleteVolume", missing("volumeId")) },
  "controller.delete-volume.unknown": {
    fault: () => refuses("deleteVolume", unknown("volumeId"), "NOT_FOUND"),
  },
  "controller.delete-volume.idempotent": {
    fault: () => refusesRepeats("deleteVolume", (r) => r.volumeId, "NOT_FOUND"),
  },
  "controller.delete-volume.gone": {
    fault: () => {
      const deleted = new Set<string>();
      return all(
        notes("deleteVolume", (r) => deleted.add(r.volumeId)),
        answers("validateVolumeCapabilities", (r) => deleted.has(r.volumeId)),
      );
    },
  },
  "controller.delete-volume.other-stays": {
    fault: () => mistakes("deleteVolume", (r) => ({ ...r, volumeId: r.volumeId.replace(/^\.\//, "") })),
  },
  "controller.delete-volume.in-use": {
    fault: () => confuses("deleteVolume", "FAILED_PRECONDITION", { answer: {} }),
  },
  "controller.delete-volume.parallel": { fault: () => refusesCompany("deleteVolume") },
  "controller.delete-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("createVolume"), (isOld) => refuses("deleteVolume", (r) => isOld(r.volumeId))),
  },
  "controller.delete-volume.with-snapshots": {
    fault: () => {
      const sources = new Set<string>();
      return all(
        notes("createSnapshot", (r) => sources.add(r.sourceVolumeId)),
        refuses("deleteVolume", (r) => sources.delete(r.volumeId)),
      );
    },
  },

  // ValidateVolumeCapabilities
  "controller.validate-volume-capabilities.id-required": {
    fault: () => answers("validateVolumeCapabilities", missing("volumeId")),
  },
  "controller.validate-volume-capabilities.capabilities-required": {
    fault: () => answers("validateVolumeCapabilities", missing("volumeCapabilities")),
  },
  "controller.validate-volume-capabilities.unknown": {
    fault: () => answers("validateVolumeCapabilities", unknown("volumeId")),
  },
  "controller.validate-volume-capabilities.confirms": {
    fault: () => alters("validateVolumeCapabilities", () => ({ message: "never" })),
  },
  "controller.validate-volume-capabilities.not-confirmed": {
    fault: () =>
      alters("validateVolumeCapabilities", (_answer, { volumeCapabilities }) => ({
        confirmed: { volumeCapabilities },
      })),
  },

  // ListVolumes, ControllerGetVolume, GetCapacity
  "controller.list-volumes.works": {
    fault: () => entriesOf("listVolumes", (entries) => [{ volume: { volumeId: "" } }, ...entries]),
  },
  "controller.list-volumes.shows-created": {
    fault: () =>
      entriesOf("listVolumes", (entries) =>
        entries.map((e) => ({ ...e, volume: { ...e.volume, capacityBytes: 5n } })),
      ),
  },
  "controller.list-volumes.hides-deleted": {
    fault: () => {
      const deleted: string[] = [];
      return all(
        alters("deleteVolume", (answer, { volumeId }) => {
          if (/^vol-\d+$/.test(volumeId) && !deleted.includes(volumeId)) deleted.push(volumeId);
          return answer;
        }),
        entriesOf("listVolumes", (entries, r) =>
          r.maxEntries === 0
            ? [...entries, ...deleted.map((volumeId) => ({ volume: { volumeId } }))]
            : entries,
        ),
      );
    },
  },
  "controller.list-volumes.paging": {
    fault: () => mistakes("listVolumes", (r) => ({ ...r, maxEntries: Math.min(r.maxEntries, 0) })),
  },
  "controller.list-volumes.paging-while-deleting": {
    // A token that counts what was given: a volume that goes away moves all others.
    fault: () =>
      around("listVolumes", (call) => async (request, signal) => {
        const { maxEntries, startingToken } = request;
        const isOwn = /^at-\d+$/.test(startingToken);
        if (maxEntries <= 0 && !isOwn) return call(request, signal);
        const at = isOwn ? Number(startingToken.slice("at-".length)) : 0;
        const { entries } = await call({ ...request, maxEntries: 0, startingToken: "" }, signal);
        const next = at + (maxEntries || entries.length);
        return { entries: entries.slice(at, next), nextToken: next < entries.length ? `at-${next}` : "" };
      }),
  },
  "controller.list-volumes.invalid-token": {
    fault: () => confuses("listVolumes", "ABORTED", "INVALID_ARGUMENT"),
  },
  "controller.list-volumes.negative-max-entries": {
    fault: () => confuses("listVolumes", "INVALID_ARGUMENT", { answer: {} }),
  },
  "controller.list-volumes.published-nodes": {
    fault: () =>
      entriesOf("listVolumes", (entries) =>
        entries.map((e) => ({ ...e, status: { ...e.status, publishedNodeIds: [] } })),
      ),
  },
  "controller.list-volumes.condition": {
    fault: () =>
      entriesOf("listVolumes", (entries) =>
        entries.map((e) => ({ ...e, status: { ...e.status, volumeCondition: undefined } })),
      ),
  },
  "controller.get-volume.id-required": { fault: () => answers("controllerGetVolume", missing("volumeId")) },
  "controller.get-volume.unknown": { fault: () => confuses("controllerGetVolume", "NOT_FOUND", "INTERNAL") },
  "controller.get-volume.works": {
    fault: () => alters("controllerGetVolume", ({ volume }) => ({ volume })),
  },
  "controller.get-volume.published-nodes": {
    fault: () =>
      alters("controllerGetVolume", (a) => ({ ...a, status: { ...a.status, publishedNodeIds: [] } })),
  },
  "controller.get-volume.condition": {
    fault: () =>
      alters("controllerGetVolume", (a) => ({ ...a, status: { ...a.status, volumeCondition: undefined } })),
  },
  "controller.get-capacity.works": {
    fault: () => refuses("getCapacity", (r) => r.volumeCapabilities.length === 0 && !r.accessibleTopology),
  },
  "controller.get-capacity.of-capability": {
    fault: () => alters("getCapacity", (answer) => ({ ...answer, minimumVolumeSize: 2n ** 61n })),
  },
  "controller.get-capacity.unknown-topology": {
    fault: () => mistakes("getCapacity", (r) => ({ ...r, accessibleTopology: undefined })),
  },

  // ControllerPublishVolume, ControllerUnpublishVolume
  "controller.publish-volume.works": {
    fault: () =>
      refuses(
        "controllerPublishVolume",
        (r) => r.nodeId === "node-1" && r.volumeId.startsWith("vol-") && r.volumeCapability !== undefined,
      ),
  },
  "controller.publish-volume.id-required": {
    fault: () => answers("controllerPublishVolume", missing("volumeId")),
  },
  "controller.publish-volume.node-id-required": {
    fault: () => answers("controllerPublishVolume", missing("nodeId")),
  },
  "controller.publish-volume.capability-required": {
    fault: () => answers("controllerPublishVolume", (r) => r.volumeCapability === undefined),
  },
  "controller.publish-volume.unknown-volume": {
    fault: () => answers("controllerPublishVolume", unknown("volumeId")),
  },
  "controller.publish-volume.unknown-node": {
    fault: () => refuses("controllerPublishVolume", unknown("nodeId")),
  },
  "controller.publish-volume.idempotent": {
    fault: () => {
      const count = counting();
      return alters("controllerPublishVolume", (_a, r) => ({
        publishContext: { device: `${r.volumeId} ${count(r.volumeId)}` },
      }));
    },
  },
  "controller.publish-volume.different-readonly": {
    fault: () => confuses("controllerPublishVolume", "ALREADY_EXISTS", { answer: {} }),
  },
  "controller.publish-volume.readonly": {
    fault: () => {
      const published = new Set<string>();
      return all(
        notes("controllerPublishVolume", (r) => published.add(r.volumeId)),
        refuses("controllerPublishVolume", (r) => r.readonly && !published.has(r.volumeId)),
      );
    },
  },
  "controller.publish-volume.second-node": {
    fault: () => confuses("controllerPublishVolume", "FAILED_PRECONDITION", { answer: {} }),
  },
  "controller.publish-volume.node-full": {
    fault: () => confuses("controllerPublishVolume", "RESOURCE_EXHAUSTED", "INTERNAL"),
  },
  "controller.publish-volume.parallel-same-volume": {
    fault: () => refusesCompany("controllerPublishVolume", (r) => r.volumeId),
  },
  "controller.publish-volume.parallel-different-volumes": {
    fault: () => abortsCompany("controllerPublishVolume"),
  },
  "controller.publish-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("controllerPublishVolume"), (isOld) =>
        alters("controllerPublishVolume", (answer, r) =>
          isOld(r.volumeId) ? { publishContext: { device: "other" } } : answer,
        ),
      ),
  },
  "controller.unpublish-volume.id-required": {
    fault: () => answers("controllerUnpublishVolume", missing("volumeId")),
  },
  "controller.unpublish-volume.unknown-volume": {
    fault: () => refuses("controllerUnpublishVolume", unknown("volumeId")),
  },
  "controller.unpublish-volume.unknown-node": {
    fault: () => refuses("controllerUnpublishVolume", unknown("nodeId"), "INVALID_ARGUMENT"),
  },
  "controller.unpublish-volume.works": {
    fault: () => {
      const count = counting();
      return answers(
        "controllerUnpublishVolume",
        (r) => isVolume(r) && r.nodeId !== "" && count(r.volumeId) === 2,
      );
    },
  },
  "controller.unpublish-volume.not-published": {
    fault: () => {
      const published = new Set<string>();
      return all(
        notes("controllerPublishVolume", (r) => published.add(r.volumeId)),
        refuses(
          "controllerUnpublishVolume",
          (r) => r.volumeId.startsWith("vol-") && r.nodeId === "node-1" && !published.has(r.volumeId),
          "NOT_FOUND",
        ),
      );
    },
  },
  "controller.unpublish-volume.idempotent": {
    fault: () => refusesRepeats("controllerUnpublishVolume", (r) => r.volumeId, "NOT_FOUND"),
  },
  "controller.unpublish-volume.all-nodes": {
    fault: () => answers("controllerUnpublishVolume", missing("nodeId")),
  },
  "controller.unpublish-volume.parallel": { fault: () => refusesCompany("controllerUnpublishVolume") },
  "controller.unpublish-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("controllerPublishVolume"), (isOld) =>
        refuses("controllerUnpublishVolume", (r) => isOld(r.volumeId)),
      ),
  },

  // CreateVolume again
  "controller.create-volume.idempotent": {
    fault: () => {
      const count = counting();
      return mistakes("createVolume", (r) =>
        sourceOf(r) === undefined ? { ...r, name: r.name && `${r.name} ${count(r.name)}` } : r,
      );
    },
  },
  "controller.create-volume.same-context": {
    fault: () => {
      const count = counting();
      return volume((v, r) => ({ volumeContext: { ...v.volumeContext, call: `${count(r.name)}` } }));
    },
  },
  "controller.create-volume.different-size": {
    fault: () => confuses("createVolume", "ALREADY_EXISTS", "INTERNAL"),
  },
  "controller.create-volume.different-source": {
    fault: () => {
      const names = new Set<string>();
      return mistakes("createVolume", (r) => {
        if (sourceOf(r) === undefined) names.add(r.name);
        return names.has(r.name) ? { ...r, volumeContentSource: undefined } : r;
      });
    },
  },
  "controller.create-volume.different-names": {
    fault: () => {
      // A volume that nothing has been done with yet is given to the next who asks for one like it.
      let idle: { readonly name: string; readonly answer: Loose } | undefined;
      const forget = (rpc: string) =>
        mistakes(rpc, (request) => {
          idle = undefined;
          return request;
        });
      return all(
        around("createVolume", (call) => async (request, signal) => {
          const isPlain =
            sourceOf(request) === undefined && size(request) === 2n ** 30n && limit(request) === 0n;
          if (isPlain && idle !== undefined && idle.name !== request.name) return idle.answer;
          const answer = await call(request, signal);
          idle = isPlain ? { name: request.name, answer } : undefined;
          return answer;
        }),
        ...["deleteVolume", "listVolumes", "controllerPublishVolume", "createSnapshot"].map(forget),
      );
    },
  },
  "controller.create-volume.name-again": {
    fault: () => {
      const names = new Map<string, string>();
      const used = new Set<string | undefined>();
      return all(
        notes("createVolume", (r, { volume: made }) => names.set(made.volumeId, r.name)),
        notes("deleteVolume", (r) => used.add(names.get(r.volumeId))),
        refuses("createVolume", (r) => used.has(r.name), "ALREADY_EXISTS"),
      );
    },
  },
  "controller.create-volume.parallel-same-name": {
    fault: () => refusesCompany("createVolume", (r) => r.name),
  },
  "controller.create-volume.parallel-one-left": {
    fault: () =>
      inCompany("createVolume", async (request, call, signal) => {
        await call({ ...request, name: `${request.name} second` }, signal);
        throw new CsiStatusError("ABORTED", "planted: and yet it was made");
      }),
  },
  "controller.create-volume.parallel-different-names": { fault: () => abortsCompany("createVolume") },
  "controller.create-volume.after-crash": {
    fault: () =>
      afterCrash(namesOf("createVolume"), (isOld) =>
        mistakes("createVolume", (r) => (isOld(r.name) ? { ...r, name: `${r.name} again` } : r)),
      ),
  },
  "controller.create-volume.crash-under-way": {
    fault: () => {
      const underWay = new Set<string>();
      return (services, host) => {
        const locked = new Set(underWay); // These locks are never released.
        underWay.clear();
        return all(
          around("createVolume", (call) => async (request, signal) => {
            underWay.add(request.name);
            const answer = await call(request, signal);
            underWay.delete(request.name);
            return answer;
          }),
          refuses("createVolume", (r) => locked.has(r.name), "ABORTED"),
        )(services, host);
      };
    },
  },

  // ControllerExpandVolume, ControllerModifyVolume
  "controller.expand-volume.works": { fault: () => sizesOf("controllerExpandVolume", () => 1n) },
  "controller.expand-volume.id-required": {
    fault: () => answers("controllerExpandVolume", missing("volumeId"), { capacityBytes: 1n }),
  },
  "controller.expand-volume.range-required": {
    fault: () => answers("controllerExpandVolume", (r) => r.capacityRange === undefined),
  },
  "controller.expand-volume.unknown": {
    fault: () => confuses("controllerExpandVolume", "NOT_FOUND", "INTERNAL"),
  },
  "controller.expand-volume.limit-below-required": {
    fault: () => answers("controllerExpandVolume", (r) => limit(r) > 0n && limit(r) < size(r)),
  },
  "controller.expand-volume.negative-size": {
    fault: () => answers("controllerExpandVolume", (r) => size(r) < 0n || limit(r) < 0n),
  },
  "controller.expand-volume.idempotent": {
    fault: () => refusesRepeats("controllerExpandVolume", (r) => `${r.volumeId} ${size(r)}`),
  },
  "controller.expand-volume.already-larger": {
    fault: () => sizesOf("controllerExpandVolume", (_bytes, r) => size(r)),
  },
  "controller.expand-volume.huge-size": {
    fault: () => confuses("controllerExpandVolume", "OUT_OF_RANGE", { answer: { capacityBytes: 5n } }),
  },
  "controller.expand-volume.shown": {
    fault: () =>
      alters("controllerGetVolume", (a) => ({ ...a, volume: { ...a.volume, capacityBytes: 2n ** 30n } })),
  },
  "controller.expand-volume.online": {
    fault: () => {
      const published = new Set<string>();
      return all(
        notes("controllerPublishVolume", (r) => published.add(r.volumeId)),
        refuses("controllerExpandVolume", (r) => published.has(r.volumeId), "FAILED_PRECONDITION"),
      );
    },
  },
  "controller.expand-volume.offline-only": {
    fault: () =>
      confuses("controllerExpandVolume", "FAILED_PRECONDITION", { answer: { capacityBytes: 2n ** 40n } }),
    without: ["VOLUME_EXPANSION_ONLINE"],
  },
  "controller.expand-volume.parallel": { fault: () => refusesCompany("controllerExpandVolume") },
  "controller.expand-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("controllerExpandVolume"), (isOld) =>
        sizesOf("controllerExpandVolume", (bytes, r) => (isOld(r.volumeId) ? bytes * 2n : bytes)),
      ),
  },
  "controller.modify-volume.id-required": {
    fault: () => answers("controllerModifyVolume", missing("volumeId")),
  },
  "controller.modify-volume.unknown": {
    fault: () => confuses("controllerModifyVolume", "NOT_FOUND", { answer: {} }),
  },
  "controller.modify-volume.unknown-parameters": {
    fault: () => answers("controllerModifyVolume", (r) => !("iops" in r.mutableParameters)),
  },
  "controller.modify-volume.idempotent": {
    fault: () => refusesRepeats("controllerModifyVolume", (r) => r.volumeId),
  },

  // Snapshots
  "controller.list-snapshots.works": {
    fault: () =>
      entriesOf("listSnapshots", (entries, r) =>
        r.snapshotId === "" && r.sourceVolumeId === "" && r.maxEntries === 0
          ? [{ snapshot: { snapshotId: "" } }, ...entries]
          : entries,
      ),
  },
  "controller.list-snapshots.shows-created": {
    fault: () =>
      entriesOf("listSnapshots", (entries, r) =>
        r.snapshotId === "" && r.sourceVolumeId === "" && r.maxEntries === 0 ? [] : entries,
      ),
  },
  "controller.list-snapshots.by-id": {
    fault: () =>
      mistakes("listSnapshots", (r) => ({ ...r, snapshotId: unknown("snapshotId")(r) ? r.snapshotId : "" })),
  },
  "controller.list-snapshots.by-source": {
    fault: () =>
      mistakes("listSnapshots", (r) => ({
        ...r,
        sourceVolumeId: unknown("sourceVolumeId")(r) ? r.sourceVolumeId : "",
      })),
  },
  "controller.list-snapshots.unknown": {
    fault: () => refuses("listSnapshots", unknown("snapshotId"), "NOT_FOUND"),
  },
  "controller.list-snapshots.paging": {
    fault: () => mistakes("listSnapshots", (r) => ({ ...r, maxEntries: Math.min(r.maxEntries, 0) })),
  },
  "controller.list-snapshots.invalid-token": {
    fault: () => confuses("listSnapshots", "ABORTED", { answer: {} }),
  },
  "controller.list-snapshots.negative-max-entries": {
    fault: () => confuses("listSnapshots", "INVALID_ARGUMENT", { answer: {} }),
  },
  "controller.create-snapshot.works": {
    fault: () =>
      alters("createSnapshot", ({ snapshot }) => ({ snapshot: { ...snapshot, creationTime: undefined } })),
  },
  "controller.create-snapshot.name-required": {
    fault: () =>
      around("createSnapshot", (call) => async (r, s) => (r.name === "" ? aSnapshot(r) : call(r, s))),
  },
  "controller.create-snapshot.source-required": {
    fault: () =>
      around(
        "createSnapshot",
        (call) => async (r, s) => (r.sourceVolumeId === "" ? aSnapshot(r) : call(r, s)),
      ),
  },
  "controller.create-snapshot.unknown-source": {
    fault: () => confuses("createSnapshot", "NOT_FOUND", "INTERNAL"),
  },
  "controller.create-snapshot.ready": {
    fault: () =>
      alters("createSnapshot", ({ snapshot }) => ({ snapshot: { ...snapshot, readyToUse: false } })),
  },
  "controller.create-snapshot.idempotent": {
    fault: () => {
      const count = counting();
      return mistakes("createSnapshot", (r) => ({ ...r, name: r.name && `${r.name} ${count(r.name)}` }));
    },
  },
  "controller.create-snapshot.same-time": {
    fault: () => {
      let now = 100n;
      return alters("createSnapshot", ({ snapshot }) => ({
        snapshot: { ...snapshot, creationTime: { seconds: now++, nanos: 0 } },
      }));
    },
  },
  "controller.create-snapshot.different-source": {
    fault: () => confuses("createSnapshot", "ALREADY_EXISTS", "INTERNAL"),
  },
  "controller.create-snapshot.names": {
    fault: () => mistakes("createSnapshot", (r) => ({ ...r, name: r.name.slice(0, 120) })),
  },
  "controller.create-snapshot.parallel": { fault: () => refusesCompany("createSnapshot") },
  "controller.create-snapshot.after-crash": {
    fault: () =>
      afterCrash(namesOf("createSnapshot"), (isOld) =>
        mistakes("createSnapshot", (r) => (isOld(r.name) ? { ...r, name: `${r.name} again` } : r)),
      ),
  },
  "controller.delete-snapshot.id-required": { fault: () => answers("deleteSnapshot", missing("snapshotId")) },
  "controller.delete-snapshot.unknown": {
    fault: () => refuses("deleteSnapshot", unknown("snapshotId"), "NOT_FOUND"),
  },
  "controller.delete-snapshot.idempotent": {
    fault: () => refusesRepeats("deleteSnapshot", (r) => r.snapshotId, "NOT_FOUND"),
  },
  "controller.delete-snapshot.source-stays": {
    fault: () => {
      const sources = new Map<string, string>();
      return (services, host) =>
        all(
          notes("createSnapshot", (r, { snapshot }) => sources.set(snapshot.snapshotId, r.sourceVolumeId)),
          around("deleteSnapshot", (call) => async (request, signal) => {
            const answer = await call(request, signal);
            const volumeId = sources.get(request.snapshotId) ?? "vol-none";
            await services.controller?.deleteVolume?.({ volumeId } as Loose, signal);
            return answer;
          }),
        )(services, host);
    },
  },
  "controller.delete-snapshot.parallel": { fault: () => refusesCompany("deleteSnapshot") },
  "controller.get-snapshot.id-required": { fault: () => answers("getSnapshot", missing("snapshotId")) },
  "controller.get-snapshot.unknown": { fault: () => confuses("getSnapshot", "NOT_FOUND", "INTERNAL") },
  "controller.get-snapshot.works": {
    fault: () =>
      alters("getSnapshot", ({ snapshot }) => ({ snapshot: { ...snapshot, sourceVolumeId: "other" } })),
  },

  // Content sources
  ...Object.fromEntries(
    (["snapshot", "volume"] as const).flatMap((kind) => {
      const name = kind === "volume" ? "clone" : kind;
      const id = `controller.create-volume.from-${name}`;
      const from = (request: Loose) => sourceOf(request) === kind;
      return [
        [id, { fault: () => volume((v, r) => (from(r) ? { contentSource: undefined } : v)) }],
        [
          `${id}-idempotent`,
          {
            fault: () => {
              const count = counting();
              return mistakes("createVolume", (r) =>
                from(r) ? { ...r, name: `${r.name} ${count(r.name)}` } : r,
              );
            },
          },
        ],
        [`${id}-smaller`, { fault: () => answers("createVolume", (r) => from(r) && limit(r) > 0n, aVolume) }],
        [
          `${id}-unknown`,
          {
            fault: () =>
              answers(
                "createVolume",
                (r) => from(r) && JSON.stringify(r.volumeContentSource).includes("-unknown-"),
                aVolume,
              ),
          },
        ],
      ];
    }),
  ),

  // Secrets
  "controller.create-volume.without-secrets": { fault: () => withoutSecrets("createVolume") },
  "controller.delete-volume.without-secrets": { fault: () => withoutSecrets("deleteVolume") },
  "controller.publish-volume.without-secrets": { fault: () => withoutSecrets("controllerPublishVolume") },
  "controller.create-snapshot.without-secrets": { fault: () => withoutSecrets("createSnapshot") },
  "controller.expand-volume.without-secrets": { fault: () => withoutSecrets("controllerExpandVolume") },
  "node.stage-volume.without-secrets": { fault: () => withoutSecrets("nodeStageVolume") },

  // Snapshot metadata
  ...metadataFaults("allocated", allocated),
  "snapshot-metadata.allocated.id-required": {
    fault: () => streams(allocated, missing("snapshotId"), someMetadata),
  },
  "snapshot-metadata.allocated.unknown": {
    fault: () => streams(allocated, unknown("snapshotId"), someMetadata),
  },
  ...metadataFaults("delta", delta),
  "snapshot-metadata.delta.of-itself": {
    fault: () =>
      streams(delta, ({ baseSnapshotId, targetSnapshotId }) => baseSnapshotId === targetSnapshotId, {
        ...someMetadata,
        blockMetadata: [{ byteOffset: 0n, sizeBytes: 4096n }],
      }),
  },
  "snapshot-metadata.delta.base-required": {
    fault: () => streams(delta, missing("baseSnapshotId"), someMetadata),
  },
  "snapshot-metadata.delta.target-required": {
    fault: () => streams(delta, missing("targetSnapshotId"), someMetadata),
  },
  "snapshot-metadata.delta.unknown": {
    fault: () => streams(delta, unknown("targetSnapshotId"), someMetadata),
  },

  // Groups
  "group-controller.capabilities.known": {
    fault: () => alters("groupControllerGetCapabilities", addCapability(unknownCapability)),
  },
  "group-controller.create-group-snapshot.works": {
    fault: () =>
      group((g) => ({ snapshots: g.snapshots.map((s: Loose) => ({ ...s, groupSnapshotId: "" })) })),
  },
  "group-controller.create-group-snapshot.ready": {
    fault: () => group((g) => ({ snapshots: g.snapshots.map((s: Loose) => ({ ...s, readyToUse: false })) })),
  },
  "group-controller.create-group-snapshot.name-required": {
    fault: () => answers("createVolumeGroupSnapshot", missing("name"), aGroup),
  },
  "group-controller.create-group-snapshot.sources-required": {
    fault: () => answers("createVolumeGroupSnapshot", missing("sourceVolumeIds"), aGroup),
  },
  "group-controller.create-group-snapshot.unknown-source": {
    fault: () => confuses("createVolumeGroupSnapshot", "NOT_FOUND", "INTERNAL"),
  },
  "group-controller.create-group-snapshot.different-sources": {
    fault: () => confuses("createVolumeGroupSnapshot", "ALREADY_EXISTS", { answer: aGroup }),
  },
  "group-controller.create-group-snapshot.idempotent": {
    fault: () =>
      refusesRepeats("createVolumeGroupSnapshot", (r) => `${r.name} ${r.sourceVolumeIds}`, "ALREADY_EXISTS"),
  },
  "group-controller.delete-group-snapshot.idempotent": {
    fault: () => refusesRepeats("deleteVolumeGroupSnapshot", (r) => r.groupSnapshotId, "NOT_FOUND"),
  },
  "group-controller.delete-group-snapshot.unknown": {
    fault: () => refuses("deleteVolumeGroupSnapshot", unknown("groupSnapshotId"), "NOT_FOUND"),
  },
  "group-controller.delete-group-snapshot.id-required": {
    fault: () => answers("deleteVolumeGroupSnapshot", missing("groupSnapshotId")),
  },
  "group-controller.delete-group-snapshot.different-snapshots": {
    fault: () => confuses("deleteVolumeGroupSnapshot", "INVALID_ARGUMENT", "INTERNAL"),
  },
  "group-controller.delete-group-snapshot.members": {
    fault: () => confuses("deleteSnapshot", "INVALID_ARGUMENT", "FAILED_PRECONDITION"),
  },
  "group-controller.get-group-snapshot.works": {
    fault: () =>
      alters("getVolumeGroupSnapshot", ({ groupSnapshot }) => ({
        groupSnapshot: { ...groupSnapshot, snapshots: [] },
      })),
  },
  "group-controller.get-group-snapshot.id-required": {
    fault: () => answers("getVolumeGroupSnapshot", missing("groupSnapshotId"), aGroup),
  },
  "group-controller.get-group-snapshot.unknown": {
    fault: () => confuses("getVolumeGroupSnapshot", "NOT_FOUND", { answer: aGroup }),
  },
  "group-controller.get-group-snapshot.different-snapshots": {
    fault: () => mistakes("getVolumeGroupSnapshot", (r) => ({ ...r, snapshotIds: [] })),
  },

  // Node: information
  "node.capabilities.known": { fault: () => alters("nodeGetCapabilities", addCapability(unknownCapability)) },
  "node.capabilities.same-answer": { fault: changing("nodeGetCapabilities", "capabilities") },
  "node.capabilities.undeclared-refused": {
    fault: () => all(hides("nodeGetCapabilities", 3), answers("nodeExpandVolume", missing("volumeId"))),
  },
  "node.get-info.node-id": { fault: () => nodeInfo({ nodeId: "n".repeat(257) }) },
  "node.get-info.same-answer": {
    fault: () => {
      let count = 0n;
      return alters("nodeGetInfo", (answer) => ({ ...answer, maxVolumesPerNode: 8n + (count++ % 2n) }));
    },
  },
  "node.get-info.max-volumes": { fault: () => nodeInfo({ maxVolumesPerNode: -1n }) },
  "node.get-info.topology-given": { fault: () => nodeInfo({ accessibleTopology: undefined }) },
  "node.get-info.topology-form": {
    fault: () =>
      nodeInfo({ accessibleTopology: { segments: { "topology.fake.csi/zone": "a", "Bad_Prefix/x": "-" } } }),
  },

  // NodeStageVolume, NodeUnstageVolume
  "node.stage-volume.works": {
    fault: () =>
      refuses(
        "nodeStageVolume",
        (r) =>
          r.volumeId.startsWith("vol-") &&
          r.stagingTargetPath.startsWith("/") &&
          r.volumeCapability !== undefined,
      ),
  },
  "node.stage-volume.id-required": { fault: () => answers("nodeStageVolume", missing("volumeId")) },
  "node.stage-volume.path-required": {
    fault: () => answers("nodeStageVolume", missing("stagingTargetPath")),
  },
  "node.stage-volume.capability-required": {
    fault: () => answers("nodeStageVolume", (r) => r.volumeCapability === undefined),
  },
  "node.stage-volume.unknown-volume": { fault: () => answers("nodeStageVolume", unknown("volumeId")) },
  "node.stage-volume.incompatible": {
    fault: () => confuses("nodeStageVolume", "ALREADY_EXISTS", { answer: {} }),
  },
  "node.stage-volume.relative-path": {
    fault: () => answers("nodeStageVolume", (r) => /^[^/]/.test(r.stagingTargetPath)),
  },
  "node.stage-volume.idempotent": { fault: () => refusesRepeats("nodeStageVolume", publishing("stage")) },
  "node.stage-volume.long-path": {
    fault: () => refuses("nodeStageVolume", (r) => r.stagingTargetPath.length >= 128, "INVALID_ARGUMENT"),
  },
  "node.stage-volume.parallel-same-volume": {
    fault: () => refusesCompany("nodeStageVolume", (r) => r.volumeId),
  },
  "node.stage-volume.parallel-different-volumes": { fault: () => abortsCompany("nodeStageVolume") },
  "node.stage-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("nodeStageVolume"), (isOld) =>
        refuses("nodeStageVolume", (r) => isOld(r.volumeId), "FAILED_PRECONDITION"),
      ),
  },
  "node.unstage-volume.id-required": { fault: () => answers("nodeUnstageVolume", missing("volumeId")) },
  "node.unstage-volume.path-required": {
    fault: () => answers("nodeUnstageVolume", missing("stagingTargetPath")),
  },
  "node.unstage-volume.unknown-volume": { fault: () => refuses("nodeUnstageVolume", unknown("volumeId")) },
  "node.unstage-volume.not-staged": {
    fault: () => {
      const staged = new Set<string>();
      return all(
        notes("nodeStageVolume", (r) => staged.add(r.volumeId)),
        refuses(
          "nodeUnstageVolume",
          (r) => r.volumeId.startsWith("vol-") && r.stagingTargetPath !== "" && !staged.has(r.volumeId),
        ),
      );
    },
  },
  "node.unstage-volume.idempotent": { fault: () => refusesRepeats("nodeUnstageVolume", publishing("stage")) },
  "node.unstage-volume.leaves-the-directory": {
    fault: () =>
      afterwards("nodeUnstageVolume", async (host, { stagingTargetPath }) => {
        const isDirectory = (await host.stat(stagingTargetPath))?.kind === "directory";
        if (isDirectory) await host.writeFileAtomic(`${stagingTargetPath}/left`, "");
      }),
  },
  "node.unstage-volume.parallel": { fault: () => refusesCompany("nodeUnstageVolume") },

  // NodePublishVolume, NodeUnpublishVolume
  "node.publish-volume.works": {
    fault: () =>
      refuses(
        "nodePublishVolume",
        (r) =>
          /^vol-/.test(r.volumeId) &&
          r.targetPath.startsWith("/") &&
          r.stagingTargetPath !== "" &&
          r.volumeCapability !== undefined &&
          !r.readonly,
      ),
  },
  "node.publish-volume.makes-target": {
    fault: () =>
      afterwards("nodePublishVolume", async (host, { targetPath }) => {
        if (await host.isMountPoint(targetPath)) await host.unmount(targetPath);
        const isDirectory = (await host.stat(targetPath))?.kind === "directory";
        if (isDirectory) await host.removeDirectory(targetPath);
      }),
  },
  "node.publish-volume.id-required": { fault: () => answers("nodePublishVolume", missing("volumeId")) },
  "node.publish-volume.target-path-required": {
    fault: () => answers("nodePublishVolume", missing("targetPath")),
  },
  "node.publish-volume.capability-required": {
    fault: () => answers("nodePublishVolume", (r) => r.volumeCapability === undefined),
  },
  "node.publish-volume.unknown-volume": {
    fault: () => confuses("nodePublishVolume", "NOT_FOUND", "INTERNAL"),
  },
  "node.publish-volume.staging-path-required": {
    fault: () => refuses("nodePublishVolume", missing("stagingTargetPath"), "INVALID_ARGUMENT"),
  },
  "node.publish-volume.relative-path": {
    fault: () => answers("nodePublishVolume", (r) => /^[^/]/.test(r.targetPath)),
  },
  "node.publish-volume.different-readonly": {
    fault: () => confuses("nodePublishVolume", "ALREADY_EXISTS", { answer: {} }),
  },
  "node.publish-volume.single-writer": {
    fault: () => serves("nodePublishVolume", (r) => modeOf(r) === 6),
  },
  "node.publish-volume.multi-writer": {
    fault: () => onePath(7),
  },
  "node.publish-volume.second-target": {
    fault: () => onePath(1),
  },
  "node.publish-volume.idempotent": {
    fault: () => refusesRepeats("nodePublishVolume", (r) => `${publishing("publish")(r)} ${r.readonly}`),
  },
  "node.publish-volume.not-staged": {
    fault: () =>
      around("nodePublishVolume", (call) => async (request, signal) => {
        try {
          return await call(request, signal);
        } catch (error) {
          const { code } = error as CsiStatusError;
          if (code === "FAILED_PRECONDITION" && request.stagingTargetPath !== "" && modeOf(request) === 1)
            return {};
          throw error;
        }
      }),
  },
  "node.publish-volume.once-undone": {
    fault: () => {
      const count = counting();
      const published = new Map<string, number>();
      return all(
        alters("nodePublishVolume", (answer, r) => {
          published.set(r.targetPath, count(r.targetPath));
          return answer;
        }),
        around("nodeUnpublishVolume", (call) => async (r, s) => {
          const times = published.get(r.targetPath) ?? 0;
          published.set(r.targetPath, times - 1);
          return times > 1 ? {} : call(r, s);
        }),
      );
    },
  },
  "node.publish-volume.long-path": {
    fault: () => refuses("nodePublishVolume", (r) => r.targetPath.length >= 128, "INVALID_ARGUMENT"),
  },
  "node.publish-volume.block": {
    fault: () =>
      mistakes("nodePublishVolume", (r) =>
        r.volumeCapability?.accessType.case === "block"
          ? { ...r, volumeCapability: { ...r.volumeCapability, accessType: { case: "mount", value: {} } } }
          : r,
      ),
  },
  "node.publish-volume.parallel-same-target": {
    fault: () => refusesCompany("nodePublishVolume", (r) => r.volumeId),
  },
  "node.publish-volume.parallel-different-volumes": { fault: () => abortsCompany("nodePublishVolume") },
  "node.publish-volume.after-crash": {
    fault: () =>
      afterCrash(volumesOf("nodeStageVolume"), (isOld) =>
        refuses("nodePublishVolume", (r) => isOld(r.volumeId), "FAILED_PRECONDITION"),
      ),
  },
  "node.unpublish-volume.works": {
    fault: () => refuses("nodeUnpublishVolume", (r) => /^vol-/.test(r.volumeId) && r.targetPath !== ""),
  },
  "node.unpublish-volume.id-required": { fault: () => answers("nodeUnpublishVolume", missing("volumeId")) },
  "node.unpublish-volume.target-path-required": {
    fault: () => answers("nodeUnpublishVolume", missing("targetPath")),
  },
  "node.unpublish-volume.unknown-volume": {
    fault: () => refuses("nodeUnpublishVolume", unknown("volumeId")),
  },
  "node.unpublish-volume.removes-target": {
    fault: () =>
      afterwards("nodeUnpublishVolume", async (host, { targetPath }) => host.makeDirectory(targetPath)),
  },
  "node.unpublish-volume.removes-empty-target": {
    fault: () => {
      const published = new Set<string>();
      return all(
        notes("nodePublishVolume", (r) => published.add(r.targetPath)),
        answers(
          "nodeUnpublishVolume",
          (r) => r.volumeId !== "" && r.targetPath !== "" && !published.has(r.targetPath),
        ),
      );
    },
  },
  "node.unpublish-volume.not-published": {
    fault: () => {
      const published = new Set<string>();
      return all(
        notes("nodePublishVolume", (r) => published.add(r.volumeId)),
        refuses(
          "nodeUnpublishVolume",
          (r) => /^vol-/.test(r.volumeId) && r.targetPath !== "" && !published.has(r.volumeId),
        ),
      );
    },
  },
  "node.unpublish-volume.idempotent": {
    fault: () => refusesRepeats("nodeUnpublishVolume", publishing("publish")),
  },
  "node.unpublish-volume.other-target-stays": {
    fault: () => {
      const at = new Map<string, Set<string>>();
      return all(
        notes("nodePublishVolume", (r) =>
          at.set(r.volumeId, (at.get(r.volumeId) ?? new Set()).add(r.targetPath)),
        ),
        around("nodeUnpublishVolume", (call) => async (request, signal) => {
          for (const targetPath of at.get(request.volumeId) ?? [])
            await call({ ...request, targetPath }, signal);
          return call(request, signal);
        }),
      );
    },
  },
  "node.unpublish-volume.parallel": { fault: () => refusesCompany("nodeUnpublishVolume") },
  "node.lifecycle.whole": {
    fault: () => {
      // The first deletion of a volume fails after it was removed from a node in the right order.
      const steps = new Map<string, number>();
      const step = (rpc: string, order: number) =>
        notes(rpc, ({ volumeId }) => {
          if ((steps.get(volumeId) ?? 0) === order - 1) steps.set(volumeId, order);
        });
      return all(
        step("nodeUnpublishVolume", 1),
        step("nodeUnstageVolume", 2),
        step("controllerUnpublishVolume", 3),
        refuses("deleteVolume", ({ volumeId }) => steps.get(volumeId) === 3 && steps.delete(volumeId)),
      );
    },
  },

  // NodeGetVolumeStats, NodeExpandVolume
  "node.get-volume-stats.works": { fault: () => stats({ usage: [] }) },
  "node.get-volume-stats.adds-up": {
    fault: () => stats({ usage: [{ total: 5n, used: 6n, available: 5n, unit: 1 }] }),
  },
  "node.get-volume-stats.condition": { fault: () => stats({ volumeCondition: undefined }) },
  "node.get-volume-stats.id-required": {
    fault: () => answers("nodeGetVolumeStats", missing("volumeId")),
  },
  "node.get-volume-stats.path-required": {
    fault: () => answers("nodeGetVolumeStats", missing("volumePath")),
  },
  "node.get-volume-stats.unknown-volume": { fault: () => answers("nodeGetVolumeStats", unknown("volumeId")) },
  "node.get-volume-stats.unknown-path": {
    fault: () => refuses("nodeGetVolumeStats", (r) => r.volumePath.endsWith("-elsewhere")),
  },
  "node.expand-volume.works": { fault: () => sizesOf("nodeExpandVolume", () => 1n) },
  "node.expand-volume.idempotent": { fault: () => refusesRepeats("nodeExpandVolume", (r) => r.volumeId) },
  "node.expand-volume.seen": {
    fault: () => {
      const first = new Map<string, bigint>();
      return alters("nodeGetVolumeStats", (answer, r) => {
        const total = first.get(r.volumeId) ?? answer.usage[0].total;
        first.set(r.volumeId, total);
        return { ...answer, usage: [{ ...answer.usage[0], total, available: total }] };
      });
    },
  },
  "node.expand-volume.id-required": { fault: () => answers("nodeExpandVolume", missing("volumeId")) },
  "node.expand-volume.path-required": { fault: () => answers("nodeExpandVolume", missing("volumePath")) },
  "node.expand-volume.unknown-volume": { fault: () => answers("nodeExpandVolume", unknown("volumeId")) },
  "node.expand-volume.unknown-path": {
    fault: () => answers("nodeExpandVolume", (r) => r.volumePath.endsWith("-elsewhere")),
  },

  // Data
  "node.data.kept-over-unpublish": {
    fault: () => loses("nodeUnpublishVolume"),
  },
  "node.data.kept-over-unstage": {
    fault: () => loses("nodeUnstageVolume"),
  },
  "node.data.of-one-volume": {
    fault: () =>
      afterwards("nodePublishVolume", async (host, { targetPath, readonly }) => {
        if (!(await host.isMountPoint(targetPath))) return;
        await host.unmount(targetPath);
        await host.makeDirectory("/data/shared");
        await host.bindMount("/data/shared", targetPath, { readOnly: readonly });
      }),
  },
  "node.data.new-volume-empty": {
    fault: () => {
      const freed: string[] = [];
      return all(
        (services, host) =>
          around("deleteVolume", (call) => async (request, signal) => {
            const data = isVolume(request) ? await host.readFile(dataFile(request.volumeId)) : undefined;
            if (data === "old") freed.push(data);
            return call(request, signal);
          })(services, host),
        afterwards("createVolume", async (host, request, { volume: made }) => {
          const data = sourceOf(request) === undefined ? freed.pop() : undefined;
          if (data !== undefined) await host.writeFileAtomic(dataFile(made.volumeId), data);
        }),
      );
    },
  },
  "node.data.readonly": {
    fault: () =>
      afterwards("nodePublishVolume", async (host, { volumeId, targetPath, readonly }) => {
        if (!readonly || !(await host.isMountPoint(targetPath))) return;
        await host.unmount(targetPath);
        await host.bindMount(`/data/${volumeId}`, targetPath);
      }),
  },
  "node.data.from-snapshot": {
    fault: () => loses("createVolume", (r) => sourceOf(r) === "snapshot"),
  },
  "node.data.snapshot-unchanged": {
    fault: () => {
      const sources = new Map<string, string>();
      return all(
        notes("createSnapshot", (r, { snapshot }) => sources.set(snapshot.snapshotId, r.sourceVolumeId)),
        afterwards("createVolume", async (host, request, { volume: made }) => {
          const source = sources.get(request.volumeContentSource?.type.value.snapshotId);
          const data = source && (await host.readFile(dataFile(source)));
          if (data) await host.writeFileAtomic(dataFile(made.volumeId), data);
        }),
      );
    },
  },
  "node.data.cloned": {
    fault: () => loses("createVolume", (r) => sourceOf(r) === "volume"),
  },

  // Protocol
  "protocol.status-message": {
    fault: () =>
      around("controllerGetVolume", (call) => async (r, s) => {
        try {
          return await call(r, s);
        } catch (error) {
          throw new CsiStatusError((error as CsiStatusError).code, "");
        }
      }),
  },
  "protocol.status-details": {
    fault: () => (services) => services,
    async hook({ rpc }, proceed) {
      try {
        return await proceed();
      } catch (error) {
        const { code, detail } = error as CsiCallError;
        throw rpc === "ControllerGetVolume"
          ? new CsiCallError(rpc, code, detail, { hasDetails: true })
          : error;
      }
    },
  },
  "protocol.secrets-in-answers": {
    fault: () => volume((v, r) => ({ volumeContext: { ...v.volumeContext, ...r.secrets } })),
  },
  "protocol.string-size": {
    fault: () => alters("getPluginInfo", (a) => ({ ...a, vendorVersion: "v".repeat(129) })),
  },
  "protocol.map-size": {
    fault: () => alters("getPluginInfo", (a) => ({ ...a, manifest: { long: "x".repeat(4096) } })),
  },
  "protocol.negative-numbers": {
    fault: () =>
      alters("getCapacity", (a) => ({
        ...a,
        maximumVolumeSize: undefined,
        availableCapacity: a.availableCapacity === 0n ? 0n : -1n,
      })),
  },
};
