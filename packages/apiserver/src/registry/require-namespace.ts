/** New content is made only in a namespace that exists and stays (apiserver admission/plugin/namespace/lifecycle). */
import { forbidden, notFound } from "../api/errors.ts";
import { groupResource, type KindRequest, type RegistryContext } from "./registry-context.ts";

/** @param name of what is to be made, for the message @throws KubeApiError 403, 404 */
export function requireNamespace(
  { store }: RegistryContext,
  { of }: KindRequest,
  namespace: string,
  name: string,
): void {
  const there = store.table("namespaces").get("", namespace);
  if (there === undefined) throw notFound({ group: "", resource: "namespaces" }, namespace);
  if (there.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(groupResource(of), name, why, [
    {
      reason: "NamespaceTerminating",
      message: `namespace ${namespace} is being terminated`,
      field: "metadata.namespace",
    },
  ]);
}
