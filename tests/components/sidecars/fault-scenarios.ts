/** What can go wrong around a sidecar while it works: with the API server, and with its driver. */
import { lostReply } from "@longshore/csi";
import { SeededRandom } from "@longshore/runtime";
import type { CrashWorld } from "./crash-world.ts";
import { type ApiFault, type FaultyRequest, noAnswer, refused } from "./faulty-client.ts";

/** One scenario; `begin` starts its fault and returns what it does to API requests. `bites` says how often it did harm. */
export interface FaultScenario {
  readonly name: string;
  begin(world: CrashWorld): { readonly api?: ApiFault; bites(): number };
}

/** Every scenario that must end well. */
export const faultScenarios: readonly FaultScenario[] = [
  {
    name: "a third of the writes comes too late (409)",
    begin: () => refusing(({ isWrite }) => isWrite, refused(409, "Conflict")),
  },
  {
    name: "a third of the requests is too many (429)",
    begin: () => refusing(() => true, refused(429, "TooManyRequests", 1)),
  },
  {
    name: "a third of the requests meets an error of the server (500)",
    begin: () => refusing(() => true, refused(500, "InternalError")),
  },
  { name: "watches end because what they want is too old (410)", begin: expiringWatches },
  { name: "a third of the answers is lost", begin: losingAnswers },
  { name: "the API server is restarted, away for a minute each time", begin: restartingServer },
  { name: "every request takes six seconds", begin: slowServer },
  { name: "the connection is half open for two minutes", begin: halfOpen },
  { name: "the driver is gone for a minute, in the middle of its calls", begin: driverGone },
  { name: "answers of the driver are lost", begin: driverAnswersLost },
  { name: "the driver does its work long after it was given up", begin: driverLate },
];

/** Refuses a third of these requests, by lot: a fixed order could always meet the same request of a pass. */
function refusing(isMeant: (request: FaultyRequest) => boolean, failure: Error) {
  const random = new SeededRandom(11);
  let bites = 0;
  const api: ApiFault = {
    request(request, send) {
      if (!isMeant(request)) return send();
      // The first one surely.
      if (bites > 0 && random.below(3, "refusal") !== 0) return send();
      bites++;
      return Promise.reject(failure);
    },
  };
  return { api, bites: () => bites };
}

function expiringWatches({ clock }: CrashWorld) {
  let bites = 0;
  const api: ApiFault = {
    async *watch(events, signal) {
      const untilMs = clock.monotonicMs() + 3000;
      let delivered = 0;
      const expired = clock.sleep(3000, signal).then(() => "expired" as const);
      expired.catch(() => {});
      const iterator = events[Symbol.asyncIterator]();
      try {
        for (;;) {
          const next = await Promise.race([iterator.next(), expired]);
          if (next === "expired" || ++delivered > 3 || clock.monotonicMs() >= untilMs) {
            bites++;
            throw refused(410, "Expired");
          }
          if (next.done) return;
          yield next.value;
        }
      } finally {
        void iterator.return?.()?.catch(() => {});
      }
    },
  };
  return { api, bites: () => bites };
}

function losingAnswers() {
  const random = new SeededRandom(12);
  let bites = 0;
  const api: ApiFault = {
    async request(_, send) {
      const answer = await send();
      if (random.below(3, "loss") !== 0) return answer;
      bites++;
      throw noAnswer();
    },
  };
  return { api, bites: () => bites };
}

/** Away from the first write on, and once more after the next; the write that it dies at takes effect. */
function restartingServer({ clock }: CrashWorld) {
  let bites = 0;
  let restarts = 0;
  let awayUntilMs = 0;
  let onDeath: (() => void)[] = [];
  const isAway = () => clock.monotonicMs() < awayUntilMs;
  const api: ApiFault = {
    async request({ isWrite }, send) {
      if (isAway()) throw noAnswer();
      const answer = await send();
      if (!isWrite || restarts >= 3) return answer;
      restarts++;
      bites++;
      awayUntilMs = clock.monotonicMs() + 60_000;
      for (const end of onDeath) end();
      onDeath = [];
      throw noAnswer();
    },
    watch: (events) => breakable(events, isAway, (end) => onDeath.push(end)),
  };
  return { api, bites: () => bites };
}

/** A watch that `onDeath` can break; it cannot be opened while the server is unreachable. */
async function* breakable<T>(
  events: AsyncIterable<T>,
  isAway: () => boolean,
  onDeath: (end: () => void) => void,
): AsyncGenerator<T> {
  if (isAway()) throw noAnswer();
  const broken = new Promise<"broken">((resolve) => onDeath(() => resolve("broken")));
  const iterator = events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), broken]);
      if (next === "broken") throw noAnswer();
      if (next.done) return;
      yield next.value;
    }
  } finally {
    void iterator.return?.()?.catch(() => {});
  }
}

function slowServer({ clock }: CrashWorld) {
  let bites = 0;
  const api: ApiFault = {
    async request({ signal }, send) {
      bites++;
      await clock.sleep(3000, signal);
      const answer = await send();
      await clock.sleep(3000, signal);
      return answer;
    },
  };
  return { api, bites: () => bites };
}

/**
 * A half-open connection, from the first write on: a client gives up a request after its 30 s, and receives no change.
 */
function halfOpen({ clock }: CrashWorld) {
  let bites = 0;
  let untilMs: number | undefined;
  const isHalfOpen = () => untilMs !== undefined && clock.monotonicMs() < untilMs;
  const api: ApiFault = {
    async request({ isWrite, number, signal }, send) {
      if (isWrite) untilMs ??= clock.monotonicMs() + 120_000;
      if (!isHalfOpen()) return send();
      bites++;
      // Some requests arrive although no answer comes back.
      if (number % 2 === 0) await send().catch(() => {});
      await clock.sleep(30_000, signal);
      throw noAnswer();
    },
    async *watch(events, signal) {
      for await (const event of events) {
        if (isHalfOpen()) {
          await clock.sleep((untilMs ?? 0) - clock.monotonicMs(), signal);
          throw noAnswer();
        }
        yield event;
      }
    },
  };
  return { api, bites: () => bites };
}

/** Calls that change something. */
const changing =
  /^(Controller(Unp|P)ublish|CreateVolume|DeleteVolume|ControllerExpand|CreateSnap|DeleteSnap)/;

function driverGone({ csi, clock, signal, socket, serveDriver }: CrashWorld) {
  let bites = 0;
  csi.intercept(async (call, proceed) => {
    const answer = await proceed();
    if (!changing.test(call.rpc) || bites >= 2) return answer;
    bites++;
    csi.crash(socket);
    void clock.sleep(60_000, signal).then(serveDriver);
    throw lostReply(call.rpc);
  });
  return { bites: () => bites };
}

function driverAnswersLost({ csi }: CrashWorld) {
  let calls = 0;
  let bites = 0;
  csi.intercept(async (call, proceed) => {
    const answer = await proceed();
    if (!changing.test(call.rpc) || calls++ % 3 === 2) return answer;
    bites++;
    throw lostReply(call.rpc);
  });
  return { bites: () => bites };
}

/** The first calls of each kind are begun only after every deadline has passed, and still take effect. */
function driverLate({ csi, clock, signal }: CrashWorld) {
  const seen = new Map<string, number>();
  let bites = 0;
  csi.intercept(async (call, proceed) => {
    const times = (seen.get(call.rpc) ?? 0) + 1;
    seen.set(call.rpc, times);
    if (!changing.test(call.rpc) || times > 2) return proceed();
    bites++;
    await clock.sleep(90_000, signal);
    return proceed();
  });
  return { bites: () => bites };
}
