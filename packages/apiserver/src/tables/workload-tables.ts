/** Tables of what runs, and of what watches over it (kubernetes pkg/printers/internalversion). */
import type { Column, Row } from "../api/column.ts";
import {
  age,
  ageColumn,
  boolean,
  containerColumns,
  integer,
  joined,
  labelsText,
  nameColumn,
  selectorText,
  text,
  wide,
} from "./column.ts";
import { humanDuration } from "./human-duration.ts";

const readyOfWanted = text("Ready", (o) => `${o.status?.readyReplicas ?? 0}/${o.spec?.replicas ?? 0}`);
const selector = wide("Selector", (o) => selectorText(o.spec?.selector));

function completions({ spec, status }: Row): string {
  const done = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${done}/${spec.completions}`;
  const parallel = spec?.parallelism ?? 0;
  return parallel > 1 ? `${done}/1 of ${parallel}` : `${done}/1`;
}

function duration({ status }: Row, now: Date): string {
  if (status?.startTime === undefined) return "";
  const end = status.completionTime === undefined ? now.getTime() : Date.parse(status.completionTime);
  return humanDuration(end - Date.parse(status.startTime));
}

/** The first that holds, with the word for it. */
function jobStatus(o: Row): string {
  const holds = (type: string) =>
    o.status?.conditions?.some((c: Row) => c.type === type && c.status === "True");
  if (holds("Complete")) return "Complete";
  if (holds("Failed")) return "Failed";
  if (o.metadata?.deletionTimestamp !== undefined) return "Terminating";
  return ["Suspended", "FailureTarget", "SuccessCriteriaMet"].find(holds) ?? "Running";
}

/** `kind.group/name` of the controller that an object belongs to. */
function controllerText(o: Row): string {
  const owner = o.metadata?.ownerReferences?.find((ref: Row) => ref.controller === true);
  if (owner === undefined) return "<none>";
  const group = owner.apiVersion.includes("/") ? owner.apiVersion.split("/")[0] : "";
  const kind = owner.kind.toLowerCase();
  return `${group === "" ? kind : `${kind}.${group}`}/${owner.name}`;
}

function hpaTargets(o: Row): string {
  const metrics: readonly Row[] = o.spec?.metrics ?? [];
  if (metrics.length === 0) {
    const target = o.spec?.targetCPUUtilizationPercentage;
    if (target === undefined) return "<none>";
    return `${o.status?.currentCPUUtilizationPercentage ?? "<unknown>"}${o.status?.currentCPUUtilizationPercentage === undefined ? "" : "%"}/${target}%`;
  }
  return metrics.map(hpaTarget).join(", ");
}

function hpaTarget({ resource }: Row): string {
  const { averageUtilization, averageValue } = resource?.target ?? {};
  if (averageUtilization !== undefined) return `<unknown>/${averageUtilization}%`;
  return `<unknown>/${averageValue ?? "<auto>"}`;
}

/** By resource key. */
export const workloadTables: Readonly<Record<string, readonly Column[]>> = {
  "statefulsets.apps": [nameColumn, readyOfWanted, ageColumn, ...containerColumns],
  "deployments.apps": [
    nameColumn,
    readyOfWanted,
    text("Up-to-date", (o) => o.status?.updatedReplicas ?? 0),
    text("Available", (o) => o.status?.availableReplicas ?? 0),
    ageColumn,
    ...containerColumns,
    selector,
  ],
  "replicasets.apps": [
    nameColumn,
    integer("Desired", (o) => o.spec?.replicas ?? 0),
    integer("Current", (o) => o.status?.replicas ?? 0),
    integer("Ready", (o) => o.status?.readyReplicas ?? 0),
    ageColumn,
    ...containerColumns,
    selector,
  ],
  "daemonsets.apps": [
    nameColumn,
    integer("Desired", (o) => o.status?.desiredNumberScheduled ?? 0),
    integer("Current", (o) => o.status?.currentNumberScheduled ?? 0),
    integer("Ready", (o) => o.status?.numberReady ?? 0),
    integer("Up-to-date", (o) => o.status?.updatedNumberScheduled ?? 0),
    integer("Available", (o) => o.status?.numberAvailable ?? 0),
    text("Node Selector", (o) => labelsText(o.spec?.template?.spec?.nodeSelector)),
    ageColumn,
    ...containerColumns,
    selector,
  ],
  "controllerrevisions.apps": [
    nameColumn,
    text("Controller", controllerText),
    text("Revision", (o) => o.revision ?? 0),
    ageColumn,
  ],
  "jobs.batch": [
    nameColumn,
    { ...text("Status", jobStatus), since: "jobStatusColumn" },
    text("Completions", completions),
    text("Duration", duration),
    ageColumn,
    ...containerColumns,
    selector,
  ],
  "cronjobs.batch": [
    nameColumn,
    text("Schedule", (o) => o.spec?.schedule ?? ""),
    { ...text("Timezone", (o) => o.spec?.timeZone ?? "<none>"), since: "jobStatusColumn" },
    boolean("Suspend", (o) =>
      o.spec?.suspend === undefined ? "<unset>" : o.spec.suspend ? "True" : "False",
    ),
    integer("Active", (o) => o.status?.active?.length ?? 0),
    text("Last Schedule", (o, now) =>
      o.status?.lastScheduleTime === undefined ? "<none>" : age(o.status.lastScheduleTime, now),
    ),
    ageColumn,
    wide("Containers", (o) => joined(jobContainers(o).map(({ name }) => name))),
    wide("Images", (o) => joined(jobContainers(o).map(({ image }) => image))),
    wide("Selector", (o) => selectorText(o.spec?.jobTemplate?.spec?.selector)),
  ],
  "poddisruptionbudgets.policy": [
    nameColumn,
    text("Min Available", (o) => String(o.spec?.minAvailable ?? "N/A")),
    text("Max Unavailable", (o) => String(o.spec?.maxUnavailable ?? "N/A")),
    integer("Allowed Disruptions", (o) => o.status?.disruptionsAllowed ?? 0),
    ageColumn,
  ],
  "horizontalpodautoscalers.autoscaling": [
    nameColumn,
    text("Reference", (o) => `${o.spec?.scaleTargetRef?.kind ?? ""}/${o.spec?.scaleTargetRef?.name ?? ""}`),
    text("Targets", hpaTargets),
    text("MinPods", (o) => String(o.spec?.minReplicas ?? "<unset>")),
    text("MaxPods", (o) => o.spec?.maxReplicas ?? 0),
    text("Replicas", (o) => o.status?.currentReplicas ?? 0),
    ageColumn,
  ],
};

const jobContainers = (o: Row): readonly Row[] => o.spec?.jobTemplate?.spec?.template?.spec?.containers ?? [];
