/** Faults of CreateVolume and DeleteVolume. */
import {
  CapacityRangeSchema,
  type CreateVolumeRequest,
  CreateVolumeResponseSchema,
  type CsiServices,
  CsiStatusError,
  create,
  VolumeCapabilitySchema,
} from "@longshore/csi";
import {
  type AnswerOf,
  answersOn,
  answersWhen,
  around,
  asks,
  changes,
  everyCall,
  type Fault,
  notTwice,
} from "./fault.ts";
import type { FaultName } from "./fault-descriptions.ts";

const service = "controller";
type Answer = AnswerOf<"controller", "createVolume">;
type Volume = NonNullable<ReturnType<typeof volumeOf>>;

function volumeOf(answer: Answer) {
  return create(CreateVolumeResponseSchema, answer).volume;
}

/** Changes the volume that is answered. */
function shows(change: (volume: Volume, request: CreateVolumeRequest) => Partial<Volume>): Fault {
  return changes(service, "createVolume", (answer, request) => {
    const volume = volumeOf(answer);
    return volume === undefined ? answer : { volume: { ...volume, ...change(volume, request) } };
  });
}

/** Whether two values are the same but for the order of keys; sizes are compared as text. */
function isSame(a: unknown, b: unknown): boolean {
  const text = (value: unknown) =>
    JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v)) ?? "";
  return text(a) === text(b);
}

type Part = "capacityRange" | "volumeContentSource" | "parameters";

/** Returns the existing volume when a repeat differs in this part alone. */
function ignoresOther(part: Part): Fault {
  return around(service, "createVolume", () => {
    const made = new Map<string, { readonly request: CreateVolumeRequest; readonly answer: Answer }>();
    return async ({ request, next }): Promise<Answer> => {
      try {
        const answer = await next();
        made.set(request.name, { request, answer });
        return answer;
      } catch (error) {
        const before = made.get(request.name);
        const isRepeat = error instanceof CsiStatusError && error.code !== "ABORTED" && before !== undefined;
        const others = (["capacityRange", "volumeContentSource", "parameters"] as const).filter(
          (p) => p !== part,
        );
        if (!isRepeat || others.some((p) => !isSame(before.request[p], request[p]))) throw error;
        return before.answer;
      }
    };
  });
}

function cutName(name: string, bytesMax: number): string {
  let kept = "";
  for (const char of name) {
    if (Buffer.byteLength(kept + char) > bytesMax) return kept;
    kept += char;
  }
  return kept;
}

const refuses = (when: (request: CreateVolumeRequest) => boolean): Fault =>
  around(service, "createVolume", () => async ({ request, next }): Promise<Answer> => {
    if (when(request)) throw new CsiStatusError("INVALID_ARGUMENT", "the driver does not like this name");
    return next();
  });

type ContentSource = CreateVolumeRequest["volumeContentSource"];
const withoutSource = (request: CreateVolumeRequest): CreateVolumeRequest => {
  const { volumeContentSource: _source, ...rest } = request;
  return rest;
};
const withoutRange = (request: CreateVolumeRequest): CreateVolumeRequest => {
  const { capacityRange: _range, ...rest } = request;
  return rest;
};
const withSource = (answer: Answer, contentSource: ContentSource): Answer => {
  const volume = volumeOf(answer);
  return volume === undefined || contentSource === undefined
    ? answer
    : { volume: { ...volume, contentSource } };
};

/** Takes a source that is not there for none. */
const acceptsMissingSource = (kind: "snapshot" | "volume"): Fault =>
  answersOn(
    service,
    "createVolume",
    "NOT_FOUND",
    async ({ request, next }) => withSource(await next(withoutSource(request)), request.volumeContentSource),
    (_error, request) => request.volumeContentSource?.type.case === kind,
  );

const gibibyte = 1024n ** 3n;
const signal = new AbortController().signal;

/** The size of what is to be copied. @throws CsiStatusError NOT_FOUND */
async function sourceBytes(services: CsiServices, source: ContentSource): Promise<bigint> {
  const type = source?.type;
  if (type?.case === "snapshot") {
    const { snapshotId } = type.value;
    const answer = await services.controller?.getSnapshot?.(
      { $typeName: "csi.v1.GetSnapshotRequest", snapshotId, secrets: {} },
      signal,
    );
    return answer?.snapshot?.sizeBytes ?? 0n;
  }
  const volumeId = type?.case === "volume" ? type.value.volumeId : "";
  return (await volumeSize(services, volumeId)) ?? 0n;
}

async function volumeSize(services: CsiServices, volumeId: string): Promise<bigint | undefined> {
  const answer = await services.controller?.controllerGetVolume?.(
    { $typeName: "csi.v1.ControllerGetVolumeRequest", volumeId },
    signal,
  );
  return answer?.volume?.capacityBytes;
}

/** Whether there is such a volume. */
export async function hasVolume(services: CsiServices, volumeId: string): Promise<boolean> {
  return volumeSize(services, volumeId).then(
    () => true,
    () => false,
  );
}

const padding = `-${"x".repeat(200)}`;

/** By name. */
export const createFaults = {
  "create-without-name-accepted": asks(service, "createVolume", (request) =>
    request.name === "" ? { ...request, name: "without a name" } : request,
  ),
  "create-without-capabilities-accepted": around(
    service,
    "createVolume",
    () =>
      async ({ request, next }): Promise<Answer> => {
        if (request.volumeCapabilities.length > 0) return next();
        const any = create(VolumeCapabilitySchema, {
          accessType: { case: "mount", value: {} },
          accessMode: { mode: 1 },
        });
        return next({ ...request, volumeCapabilities: [any] });
      },
  ),
  "create-without-access-mode-accepted": asks(service, "createVolume", (request) => {
    const volumeCapabilities = request.volumeCapabilities.map((capability) => ({
      ...capability,
      accessMode: capability.accessMode ?? {
        $typeName: "csi.v1.VolumeCapability.AccessMode" as const,
        mode: 1,
      },
    }));
    return { ...request, volumeCapabilities };
  }),
  "create-without-access-type-accepted": asks(service, "createVolume", (request) => {
    const block = { $typeName: "csi.v1.VolumeCapability.BlockVolume" as const };
    const volumeCapabilities = request.volumeCapabilities.map((capability) =>
      capability.accessType.case === undefined
        ? { ...capability, accessType: { case: "block" as const, value: block } }
        : capability,
    );
    return { ...request, volumeCapabilities };
  }),
  "create-not-idempotent": around(service, "createVolume", () => {
    const times = new Map<string, number>();
    return async ({ request, next }): Promise<Answer> => {
      const answer = await next();
      const before = times.get(request.name) ?? 0;
      times.set(request.name, before + 1);
      return before === 0 ? answer : next({ ...request, name: `${before} ${cutName(request.name, 100)}` });
    };
  }),
  "create-repeat-refused": (services, context) => {
    const ids = new Map<string, string>();
    const remembering = changes(service, "createVolume", (answer, { name }) => {
      ids.set(name, volumeOf(answer)?.volumeId ?? "");
      return answer;
    });
    return notTwice(service, "createVolume", ({ name }) => ids.get(name) ?? name, {
      code: "ALREADY_EXISTS",
      undone: { service, rpc: "deleteVolume", key: ({ volumeId }) => String(volumeId) },
    })(remembering(services, context), context);
  },
  "create-ignores-incompatible-repeat": ignoresOther("capacityRange"),
  "create-ignores-other-source": ignoresOther("volumeContentSource"),
  "create-ignores-other-parameters": ignoresOther("parameters"),
  "create-makes-two-at-once": around(service, "createVolume", () => {
    const busy = new Set<string>();
    return async ({ request, next }): Promise<Answer> => {
      const name = busy.has(request.name) ? `2 ${cutName(request.name, 100)}` : request.name;
      busy.add(name);
      try {
        return await next({ ...request, name });
      } finally {
        busy.delete(name);
      }
    };
  }),
  "create-control-characters-accepted": asks(service, "createVolume", (request) => {
    const chars = [...request.name].map((char) => {
      const code = char.codePointAt(0) ?? 0;
      return code < 0x20 || (code >= 0x7f && code <= 0x9f) ? "?" : char;
    });
    return { ...request, name: chars.join("") };
  }),
  "create-unicode-name-refused": refuses(({ name }) => Buffer.byteLength(name) > name.length),
  "create-long-name-refused": refuses(({ name }) => Buffer.byteLength(name) >= 128),
  "create-long-names-collide": asks(service, "createVolume", (request) => ({
    ...request,
    name: Buffer.byteLength(request.name) > 128 ? request.name : cutName(request.name, 100),
  })),
  "capacity-below-required": shows((volume, { capacityRange }) => {
    const { requiredBytes = 0n } = capacityRange ?? {};
    return { capacityBytes: requiredBytes > 0n ? requiredBytes - 1n : volume.capacityBytes };
  }),
  "limit-bytes-exceeded": shows((volume, { capacityRange }) => {
    const { limitBytes = 0n } = capacityRange ?? {};
    return { capacityBytes: limitBytes > 0n ? limitBytes + 1n : volume.capacityBytes };
  }),
  "limit-below-required-accepted": asks(service, "createVolume", (request) => {
    const range = request.capacityRange;
    const isWrong = range !== undefined && range.limitBytes > 0n && range.limitBytes < range.requiredBytes;
    return isWrong ? { ...request, capacityRange: { ...range, limitBytes: 0n } } : request;
  }),
  "negative-capacity-accepted": asks(service, "createVolume", (request) => {
    const { requiredBytes = 0n, limitBytes = 0n } = request.capacityRange ?? {};
    return requiredBytes < 0n || limitBytes < 0n ? withoutRange(request) : request;
  }),
  "impossible-capacity-accepted": answersOn(
    service,
    "createVolume",
    "OUT_OF_RANGE",
    async ({ request, next }) => {
      const volume = volumeOf(await next(withoutRange(request)));
      const capacityBytes = request.capacityRange?.requiredBytes ?? gibibyte;
      return volume === undefined ? {} : { volume: { ...volume, capacityBytes } };
    },
  ),
  "unknown-snapshot-source-accepted": acceptsMissingSource("snapshot"),
  "unknown-volume-source-accepted": acceptsMissingSource("volume"),
  "content-source-missing": changes(service, "createVolume", (answer) => {
    const volume = volumeOf(answer);
    if (volume === undefined) return answer;
    const { contentSource: _source, ...rest } = volume;
    return { volume: rest };
  }),
  "copy-smaller-than-source-accepted": answersOn(
    service,
    "createVolume",
    "OUT_OF_RANGE",
    async ({ request, next }) => withSource(await next(withoutSource(request)), request.volumeContentSource),
    (_error, request) => request.volumeContentSource !== undefined,
  ),
  "copy-is-empty": around(service, "createVolume", () => {
    const sources = new Map<string, ContentSource>();
    return async ({ request, next, services }): Promise<Answer> => {
      const { volumeContentSource: source, capacityRange, name } = request;
      const { requiredBytes: asked = 0n, limitBytes = 0n } = capacityRange ?? {};
      if (source === undefined || limitBytes > 0n) return next();
      const least = await sourceBytes(services, source);
      if (sources.has(name) && !isSame(sources.get(name), source)) {
        throw new CsiStatusError("ALREADY_EXISTS", `volume ${name} is a copy of another`);
      }
      sources.set(name, source);
      const range = create(CapacityRangeSchema, { requiredBytes: asked });
      if (least > asked) range.requiredBytes = least;
      const empty = { ...withoutSource(request), capacityRange: range };
      return withSource(await next(empty), source);
    };
  }),
  "invalid-mutable-parameters-accepted": answersOn(
    service,
    "createVolume",
    "INVALID_ARGUMENT",
    ({ request, next }) => next({ ...request, mutableParameters: {} }),
    (_error, request) => Object.keys(request.mutableParameters).length > 0,
  ),
  "volume-id-too-long": (services, context) => {
    // Every other call takes the long id for the short one, so that this rule alone is broken.
    const understanding = everyCall(({ request, next }) => {
      const { volumeId, sourceVolumeId } = request;
      const own = (id: unknown) => (typeof id === "string" ? id.replace(padding, "") : id);
      return next({
        ...request,
        ...(volumeId === undefined ? {} : { volumeId: own(volumeId) }),
        ...(sourceVolumeId === undefined ? {} : { sourceVolumeId: own(sourceVolumeId) }),
      });
    });
    const padded = shows((volume) => ({ volumeId: `${volume.volumeId}${padding}` }));
    return padded(understanding(services, context), context);
  },
  "volume-id-empty": shows(() => ({ volumeId: "" })),
  "volume-topology-missing": shows(() => ({ accessibleTopology: [] })),
  "unsatisfiable-topology-accepted": answersOn(
    service,
    "createVolume",
    "RESOURCE_EXHAUSTED",
    ({ request, next }) => {
      const { accessibilityRequirements: _where, ...anywhere } = request;
      return next(anywhere);
    },
    (_error, request) => request.accessibilityRequirements !== undefined,
  ),

  "delete-without-id-accepted": answersWhen(
    service,
    "deleteVolume",
    ({ volumeId }) => volumeId === "",
    () => ({}),
  ),
  "delete-missing-volume-not-found": around(
    service,
    "deleteVolume",
    () =>
      async ({ request, next, services }) => {
        const { volumeId } = request;
        if (volumeId !== "" && !(await hasVolume(services, volumeId))) {
          throw new CsiStatusError("NOT_FOUND", `volume ${volumeId} does not exist`);
        }
        return next();
      },
  ),
  "delete-keeps-volume": answersWhen(
    service,
    "deleteVolume",
    ({ volumeId }) => volumeId !== "",
    () => ({}),
  ),
  "delete-published-volume-accepted": answersOn(service, "deleteVolume", "FAILED_PRECONDITION", () => ({})),
  "delete-refuses-because-of-snapshots": around(
    service,
    "deleteVolume",
    () =>
      async ({ request, next, services, signal: deadline }) => {
        const { volumeId: sourceVolumeId } = request;
        const listed = await services.controller?.listSnapshots?.(
          {
            $typeName: "csi.v1.ListSnapshotsRequest",
            maxEntries: 0,
            startingToken: "",
            sourceVolumeId,
            snapshotId: "",
            secrets: {},
          },
          deadline,
        );
        if (sourceVolumeId !== "" && (listed?.entries?.length ?? 0) > 0) {
          throw new CsiStatusError("INTERNAL", "the volume has snapshots");
        }
        return next();
      },
  ),
} as const satisfies Partial<Record<FaultName, Fault>>;
