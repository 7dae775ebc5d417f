/**
 * NamespaceLifecycle: required namespaces cannot be deleted, and nothing can be created in a terminating namespace
 * (apiserver admission/plugin/namespace/lifecycle). The create code itself checks new objects.
 */
import { forbidden } from "../api/errors.ts";
import { requireNamespace } from "../registry/require-namespace.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

/** `kube-node-lease` is not among them in the reference either. */
const immortal: ReadonlySet<string> = new Set(["default", "kube-system", "kube-public"]);

/** Protects required namespaces, and refuses new objects in a namespace that is being deleted. */
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
