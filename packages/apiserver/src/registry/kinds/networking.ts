/** Ingress, IngressClass and NetworkPolicy: stored, in networking.k8s.io/v1 only (kubernetes pkg/apis/networking). */
import type { KubeObject } from "@longshore/kube";
import type { Kind } from "../../api/kind.ts";
import { type Loose, type LooseObject, mapItems, withDefaults, withMember, without } from "./shaping.ts";

const group = "networking.k8s.io";

/** Ingress. */
export const ingress: Kind = {
  group,
  versions: ["v1"],
  kind: "Ingress",
  plural: "ingresses",
  shortNames: ["ing"],
  namespaced: true,
  statusSubresource: true,
  countsGenerations: true,
  defaults: (object) => withDefaults(object as LooseObject, { spec: {} }),
  prepareCreate: (object) => ({ ...object, status: { loadBalancer: {} } }) as KubeObject,
};

/** IngressClass. */
export const ingressClass: Kind = {
  group,
  versions: ["v1"],
  kind: "IngressClass",
  plural: "ingressclasses",
  namespaced: false,
  countsGenerations: true,
};

/** Rules whose ports say their protocol. */
const withProtocols = (rules: Loose): Loose =>
  mapItems(rules, (rule) =>
    withMember(rule, "ports", (ports) => mapItems(ports, (port) => withDefaults(port, { protocol: "TCP" }))),
  );

/** NetworkPolicy: holds incoming traffic, and outgoing where it has rules for it. */
export const networkPolicy: Kind = {
  group,
  versions: ["v1"],
  kind: "NetworkPolicy",
  plural: "networkpolicies",
  shortNames: ["netpol"],
  namespaced: true,
  countsGenerations: true,
  defaults: (object) =>
    withMember(without(object as LooseObject, "status"), "spec", (spec) => {
      const filled = withDefaults(spec, {
        podSelector: {},
        policyTypes: (spec.egress ?? []).length > 0 ? ["Ingress", "Egress"] : ["Ingress"],
      });
      return withMember(withMember(filled, "ingress", withProtocols), "egress", withProtocols);
    }),
};
