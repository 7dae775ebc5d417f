/** The table of pods (kubernetes pkg/printers/internalversion printPod). */
import type { Column, Row } from "../api/column.ts";
import { age, ageColumn, deleting, integer, nameColumn, text, wide } from "./column.ts";

interface Summary {
  readonly reason: string;
  readonly ready: number;
  readonly total: number;
  readonly restarts: number;
  readonly lastRestart: string | undefined;
}

/** What keeps an init container from having ended well; undefined when nothing does. */
function initReason(status: Row, at: number, inits: Inits): string | undefined {
  const { terminated, waiting } = status.state ?? {};
  if (terminated !== undefined && (terminated.exitCode ?? 0) === 0) return undefined;
  if (inits.sidecars.has(status.name) && status.started === true) return undefined;
  if (terminated !== undefined) return `Init:${terminated.reason || endText(terminated)}`;
  if (waiting?.reason && waiting.reason !== "PodInitializing") return `Init:${waiting.reason}`;
  return `Init:${at}/${inits.count}`;
}

/** The init containers of a pod: how many there are, and the names of those that go on running. */
interface Inits {
  readonly count: number;
  readonly sidecars: ReadonlySet<string>;
}

const endText = (terminated: Row) =>
  terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode ?? 0}`;

const conditionIs = (pod: Row, type: string, test: (condition: Row) => boolean) =>
  pod.status?.conditions?.some((c: Row) => c.type === type && test(c)) === true;

function summaryOf(pod: Row): Summary {
  const containers: readonly Row[] = pod.spec?.initContainers ?? [];
  const sidecarSpecs = containers.filter((container) => container.restartPolicy === "Always");
  const inits = { count: containers.length, sidecars: new Set(sidecarSpecs.map(({ name }) => name)) };
  const initStatuses: readonly Row[] = pod.status?.initContainerStatuses ?? [];
  const statuses: readonly Row[] = pod.status?.containerStatuses ?? [];
  const sidecars = initStatuses.filter((status) => inits.sidecars.has(status.name));
  const total = (pod.spec?.containers?.length ?? 0) + sidecarSpecs.length;
  const initAt = initStatuses.findIndex((status, i) => initReason(status, i, inits) !== undefined);
  let reason: string = pod.status?.reason || pod.status?.phase || "";
  if (conditionIs(pod, "PodScheduled", (c) => c.reason === "SchedulingGated")) reason = "SchedulingGated";
  const readySidecars = sidecars.filter((status) => status.ready === true && status.started === true).length;
  if (initAt >= 0) {
    reason = initReason(initStatuses[initAt] as Row, initAt, inits) ?? reason;
    const seen = initStatuses.slice(0, initAt + 1);
    return shown(pod, reason, { ready: readySidecars, total, statuses: seen });
  }
  let isRunning = false;
  for (const status of [...statuses].reverse()) {
    const { waiting, terminated, running } = status.state ?? {};
    if (waiting?.reason) reason = waiting.reason;
    else if (terminated !== undefined) reason = terminated.reason || endText(terminated);
    else if (status.ready === true && running !== undefined) isRunning = true;
  }
  // One container has ended, another one still runs: the pod as a whole does.
  if (reason === "Completed" && isRunning) {
    reason = conditionIs(pod, "Ready", (c) => c.status === "True") ? "Running" : "NotReady";
  }
  const ready = statuses.filter(
    ({ ready: isReady, state }) =>
      isReady === true &&
      state?.running !== undefined &&
      !state.waiting?.reason &&
      state.terminated === undefined,
  ).length;
  return shown(pod, reason, { ready: ready + readySidecars, total, statuses: [...statuses, ...sidecars] });
}

function shown(
  pod: Row,
  reason: string,
  {
    ready,
    total,
    statuses,
  }: { readonly ready: number; readonly total: number; readonly statuses: readonly Row[] },
): Summary {
  const ends = statuses.flatMap((status) => status.lastState?.terminated?.finishedAt ?? []) as string[];
  return {
    reason: deleting(pod) ? (pod.status?.reason === "NodeLost" ? "Unknown" : "Terminating") : reason,
    ready,
    total,
    restarts: statuses.reduce((sum, status) => sum + (status.restartCount ?? 0), 0),
    lastRestart: ends.sort().at(-1),
  };
}

/** The columns of the table of pods. */
export const podTable: readonly Column[] = [
  nameColumn,
  text("Ready", (o) => {
    const { ready, total } = summaryOf(o);
    return `${ready}/${total}`;
  }),
  text("Status", (o) => summaryOf(o).reason),
  { ...integer("Restarts", (o) => summaryOf(o).restarts), until: "restartsWithAge" },
  {
    ...text("Restarts", (o, now) => {
      const { restarts, lastRestart } = summaryOf(o);
      const isDated = restarts > 0 && lastRestart !== undefined;
      return isDated ? `${restarts} (${age(lastRestart, now)} ago)` : String(restarts);
    }),
    since: "restartsWithAge",
  },
  ageColumn,
  wide("IP", (o) => o.status?.podIPs?.[0]?.ip || o.status?.podIP || "<none>"),
  wide("Node", (o) => o.spec?.nodeName || "<none>"),
  wide("Nominated Node", (o) => o.status?.nominatedNodeName || "<none>"),
  wide("Readiness Gates", (o) => {
    const gates: readonly Row[] = o.spec?.readinessGates ?? [];
    if (gates.length === 0) return "<none>";
    const met = gates.filter((gate) => conditionIs(o, gate.conditionType, (c) => c.status === "True"));
    return `${met.length}/${gates.length}`;
  }),
];

/** What a row says of a pod that has ended, so that clients can pass it over. */
export function podConditions(pod: Row): readonly object[] | undefined {
  const phase = pod.status?.phase;
  if (phase !== "Succeeded" && phase !== "Failed") return undefined;
  return [{ type: "Completed", status: "True", reason: phase, message: `The pod is over: ${phase}.` }];
}
