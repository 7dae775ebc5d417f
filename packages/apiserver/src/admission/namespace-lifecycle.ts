/**
 * NamespaceLifecycle: the namespaces that a cluster cannot do without stay, and nothing is made in one that goes
 * (apiserver admission/plugin/namespace/lifecycle). Whole objects are looked at where they are created.
 */
import { forbidden } from "../api/errors.ts";
import { requireNamespace } from "../registry/namespace-life.ts";
import type { AdmissionPlugin } from "./admission.ts";

/** `kube-node-lease` is not among them in the reference either. */
const immortal: ReadonlySet<string> = new Set(["default", "kube-system", "kube-public"]);

/** See the file's header. */
export const namespaceLifecycle: AdmissionPlugin = {
  name: "NamespaceLifecycle",
  onRequest(context, request) {
    const { of, verb, name = "", namespace, subresource } = request;
    if (verb === "delete" && of.group === "" && of.kind === "Namespace" && immortal.has(name)) {
      throw forbidden({ group: "", resource: "namespaces" }, name, "this namespace may not be deleted");
    }
    // Bindings, evictions and tokens are new content too.
    if (verb === "create" && subresource !== undefined && namespace !== undefined) {
      requireNamespace(context, request, namespace, name);
    }
  },
};
