/** Tables of access, networks, scheduling and coordination (kubernetes pkg/printers/internalversion). */
import type { Column, Row } from "../api/column.ts";
import { ageColumn, boolean, integer, joined, nameColumn, selectorText, text, wide } from "./column.ts";

const subjects = (o: Row, kind: string): string => {
  const names = ((o.subjects ?? []) as readonly Row[])
    .filter((subject) => subject.kind === kind)
    .map(({ namespace, name }) => (kind === "ServiceAccount" ? `${namespace ?? ""}/${name}` : name));
  return names.join(", ");
};

const bindingTable: readonly Column[] = [
  nameColumn,
  text("Role", (o) => `${o.roleRef?.kind ?? ""}/${o.roleRef?.name ?? ""}`),
  ageColumn,
  wide("Users", (o) => subjects(o, "User")),
  wide("Groups", (o) => subjects(o, "Group")),
  wide("ServiceAccounts", (o) => subjects(o, "ServiceAccount")),
];

function some(items: readonly string[], shownMax: number, between = ","): string {
  const more = items.length > shownMax ? ` + ${items.length - shownMax} more...` : "";
  return `${items.slice(0, shownMax).join(between)}${more}`;
}

const ingressHosts = (o: Row): string => {
  const hosts = ((o.spec?.rules ?? []) as readonly Row[]).flatMap(({ host }) => host || []);
  return hosts.length === 0 ? "*" : some(hosts, 3);
};

/** By resource key. */
export const otherTables: Readonly<Record<string, readonly Column[]>> = {
  "leases.coordination.k8s.io": [nameColumn, text("Holder", (o) => o.spec?.holderIdentity ?? ""), ageColumn],
  "rolebindings.rbac.authorization.k8s.io": bindingTable,
  "clusterrolebindings.rbac.authorization.k8s.io": bindingTable,
  "priorityclasses.scheduling.k8s.io": [
    nameColumn,
    integer("Value", (o) => o.value ?? 0),
    boolean("Global-Default", (o) => o.globalDefault ?? false),
    ageColumn,
    {
      ...text("PreemptionPolicy", (o) => o.preemptionPolicy ?? "<unset>"),
      since: "preemptionPolicyColumn",
    },
  ],
  "runtimeclasses.node.k8s.io": [nameColumn, text("Handler", (o) => o.handler ?? ""), ageColumn],
  "ingressclasses.networking.k8s.io": [
    nameColumn,
    text("Controller", (o) => o.spec?.controller ?? ""),
    text("Parameters", (o) => {
      const { apiGroup, kind, name } = o.spec?.parameters ?? {};
      if (name === undefined) return "<none>";
      return `${apiGroup === undefined ? kind : `${kind}.${apiGroup}`}/${name}`;
    }),
    ageColumn,
  ],
  "ingresses.networking.k8s.io": [
    nameColumn,
    text("Class", (o) => o.spec?.ingressClassName ?? "<none>"),
    text("Hosts", ingressHosts),
    text("Address", (o) =>
      ((o.status?.loadBalancer?.ingress ?? []) as readonly Row[]).map((at) => at.ip || at.hostname).join(","),
    ),
    text("Ports", (o) => (o.spec?.tls?.length ? "80, 443" : "80")),
    ageColumn,
  ],
  "networkpolicies.networking.k8s.io": [
    nameColumn,
    text("Pod-Selector", (o) => selectorText(o.spec?.podSelector)),
    ageColumn,
  ],
  "endpointslices.discovery.k8s.io": [
    nameColumn,
    text("AddressType", (o) => o.addressType ?? ""),
    text("Ports", (o) => {
      const ports = ((o.ports ?? []) as readonly Row[]).map(({ port }) => String(port ?? "*"));
      return ports.length === 0 ? "<unset>" : some(ports, 3);
    }),
    text("Endpoints", (o) => {
      const all = ((o.endpoints ?? []) as readonly Row[]).flatMap(({ addresses }) => addresses ?? []);
      return all.length === 0 ? "<unset>" : some(all, 3);
    }),
    ageColumn,
  ],
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": [
    nameColumn,
    integer("Webhooks", (o) => o.webhooks?.length ?? 0),
    ageColumn,
  ],
  "validatingwebhookconfigurations.admissionregistration.k8s.io": [
    nameColumn,
    integer("Webhooks", (o) => o.webhooks?.length ?? 0),
    ageColumn,
  ],
  "certificatesigningrequests.certificates.k8s.io": [
    nameColumn,
    ageColumn,
    text("SignerName", (o) => o.spec?.signerName ?? "<none>"),
    text("Requestor", (o) => o.spec?.username ?? ""),
    text("Condition", (o) => {
      const types = ((o.status?.conditions ?? []) as readonly Row[]).map(({ type }) => type);
      const words = types.includes("Denied") ? ["Denied"] : types.includes("Approved") ? ["Approved"] : [];
      if (types.includes("Failed")) words.push("Failed");
      if (o.status?.certificate?.length) words.push("Issued");
      return words.length === 0 ? "Pending" : joined(words);
    }),
  ],
};
