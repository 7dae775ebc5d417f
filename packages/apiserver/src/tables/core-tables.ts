/** Tables of the kinds of the core group and of events (kubernetes pkg/printers/internalversion). */
import type { Column, Row } from "../api/column.ts";
import {
  age,
  ageColumn,
  containerColumns,
  integer,
  joined,
  labelsText,
  nameColumn,
  text,
  wide,
} from "./column.ts";
import { podTable } from "./pod-table.ts";

function nodeStatus(node: Row): string {
  const ready = node.status?.conditions?.find((c: Row) => c.type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (node.spec?.unschedulable === true) words.push("SchedulingDisabled");
  return words.join(",");
}

function nodeRoles(node: Row): string {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.entries(node.metadata?.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(prefix)) return [key.slice(prefix.length)];
    return key === "kubernetes.io/role" && value !== "" ? [String(value)] : [];
  });
  return joined([...new Set(roles)].filter((role) => role !== "").sort());
}

const address = (node: Row, type: string) =>
  node.status?.addresses?.find((a: Row) => a.type === type)?.address ?? "<none>";

/** Where a service can be reached from outside. */
function externalAddress({ spec, status }: Row): string {
  const given: readonly string[] = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ExternalName":
      return spec.externalName ?? "";
    case "LoadBalancer": {
      const ingress: readonly Row[] = status?.loadBalancer?.ingress ?? [];
      const found = ingress.map((at) => at.ip || at.hostname).filter(Boolean);
      const all = [...found, ...given];
      return all.length === 0 ? "<pending>" : all.join(",");
    }
    default:
      return joined(given);
  }
}

function portText({ port, nodePort, protocol = "TCP" }: Row): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}

/** The first addresses of the ready ones, with their ports. */
function endpointsText(o: Row): string {
  const subsets: readonly Row[] = o.subsets ?? [];
  const shownMax = 3;
  const all = subsets.flatMap(({ ports = [], addresses = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }: Row) => ip)
      : ports.flatMap(({ port }: Row) => addresses.map(({ ip }: Row) => `${ip}:${port}`)),
  );
  const more = all.length > shownMax ? ` + ${all.length - shownMax} more...` : "";
  return all.length === 0 ? "<none>" : `${all.slice(0, shownMax).join(",")}${more}`;
}

const firstSeen = (o: Row) => o.firstTimestamp ?? o.deprecatedFirstTimestamp ?? o.eventTime;

/** `cpu: 1/2, pods: 0/10` of the resources that the test lets through. */
function quotaText({ status }: Row, isShown: (resource: string) => boolean): string {
  return Object.keys(status?.hard ?? {})
    .filter(isShown)
    .sort()
    .map((resource) => `${resource}: ${status?.used?.[resource] ?? "0"}/${status?.hard?.[resource]}`)
    .join(", ");
}
const isLimit = (resource: string) => resource.startsWith("limits.");

const eventTable: readonly Column[] = [
  text("Last Seen", (o, now) =>
    age(o.series?.lastObservedTime ?? o.lastTimestamp ?? o.deprecatedLastTimestamp ?? firstSeen(o), now),
  ),
  text("Type", (o) => o.type ?? ""),
  text("Reason", (o) => o.reason ?? ""),
  text("Object", (o) => {
    const { kind = "", name = "" } = o.involvedObject ?? o.regarding ?? {};
    return name === "" ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`;
  }),
  wide("Subobject", (o) => (o.involvedObject ?? o.regarding)?.fieldPath ?? ""),
  wide("Source", (o) => {
    const source: Row = o.source ?? o.deprecatedSource ?? {};
    const component = source.component || (o.reportingComponent ?? o.reportingController ?? "");
    const host = source.host || (o.reportingInstance ?? "");
    return host === "" ? component : `${component}, ${host}`;
  }),
  text("Message", (o) => String(o.message ?? o.note ?? "").trim()),
  wide("First Seen", (o, now) => age(firstSeen(o), now)),
  wide("Count", (o) => o.series?.count ?? (o.count || o.deprecatedCount || 1)),
  { ...nameColumn, priority: 1 },
];

/** By resource key. */
export const coreTables: Readonly<Record<string, readonly Column[]>> = {
  nodes: [
    nameColumn,
    text("Status", nodeStatus),
    text("Roles", nodeRoles),
    ageColumn,
    text("Version", (o) => o.status?.nodeInfo?.kubeletVersion ?? ""),
    wide("Internal-IP", (o) => address(o, "InternalIP")),
    wide("External-IP", (o) => address(o, "ExternalIP")),
    wide("OS-Image", (o) => o.status?.nodeInfo?.osImage || "<unknown>"),
    wide("Kernel-Version", (o) => o.status?.nodeInfo?.kernelVersion || "<unknown>"),
    wide("Container-Runtime", (o) => o.status?.nodeInfo?.containerRuntimeVersion || "<unknown>"),
  ],
  pods: podTable,
  namespaces: [nameColumn, text("Status", (o) => o.status?.phase ?? ""), ageColumn],
  configmaps: [
    nameColumn,
    text("Data", (o) => Object.keys(o.data ?? {}).length + Object.keys(o.binaryData ?? {}).length),
    ageColumn,
  ],
  secrets: [
    nameColumn,
    text("Type", (o) => o.type ?? ""),
    text("Data", (o) => Object.keys(o.data ?? {}).length),
    ageColumn,
  ],
  serviceaccounts: [nameColumn, text("Secrets", (o) => o.secrets?.length ?? 0), ageColumn],
  services: [
    nameColumn,
    text("Type", (o) => o.spec?.type ?? ""),
    text("Cluster-IP", (o) => o.spec?.clusterIP || "<none>"),
    text("External-IP", externalAddress),
    text("Port(s)", (o) => joined(o.spec?.ports?.map(portText))),
    ageColumn,
    wide("Selector", (o) => labelsText(o.spec?.selector)),
  ],
  endpoints: [nameColumn, text("Endpoints", endpointsText), ageColumn],
  replicationcontrollers: [
    nameColumn,
    integer("Desired", (o) => o.spec?.replicas ?? 0),
    integer("Current", (o) => o.status?.replicas ?? 0),
    integer("Ready", (o) => o.status?.readyReplicas ?? 0),
    ageColumn,
    ...containerColumns,
    wide("Selector", (o) => labelsText(o.spec?.selector)),
  ],
  podtemplates: [
    nameColumn,
    text("Containers", (o) => joined(o.template?.spec?.containers?.map((c: Row) => c.name))),
    text("Images", (o) => joined(o.template?.spec?.containers?.map((c: Row) => c.image))),
    text("Pod Labels", (o) => labelsText(o.template?.metadata?.labels)),
  ],
  resourcequotas: [
    nameColumn,
    ageColumn,
    text("Request", (o) => quotaText(o, (resource) => !isLimit(resource))),
    text("Limit", (o) => quotaText(o, isLimit)),
  ],
  componentstatuses: [
    nameColumn,
    text("Status", (o) => {
      const healthy = o.conditions?.find((c: Row) => c.type === "Healthy");
      return healthy === undefined ? "Unknown" : healthy.status === "True" ? "Healthy" : "Unhealthy";
    }),
    text("Message", (o) => o.conditions?.find((c: Row) => c.type === "Healthy")?.message ?? ""),
    text("Error", (o) => o.conditions?.find((c: Row) => c.type === "Healthy")?.error ?? ""),
  ],
  events: eventTable,
  "events.events.k8s.io": eventTable,
};
