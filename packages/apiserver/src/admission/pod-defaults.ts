/** DefaultTolerationSeconds and ServiceAccount: what a cluster adds to every new pod. */
import type { KubeObject, Pod } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

const unready = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/** Lets a pod stay for five minutes on a node that is lost. */
export const defaultTolerationSeconds: AdmissionPlugin = {
  name: "DefaultTolerationSeconds",
  onCreate: (_context, { of }, object) =>
    of.group === "" && of.plural === "pods" ? withTolerations(object) : object,
  // A write to a sub-resource of a pod changes nothing else of it.
  onUpdate: (_context, { of, subresource }, next) =>
    of.group === "" && of.plural === "pods" && subresource === undefined ? withTolerations(next) : next,
};

function withTolerations(object: KubeObject): KubeObject {
  const pod = object as Pod;
  const tolerations = pod.spec?.tolerations ?? [];
  const missing = unready.filter(
    (key) =>
      !tolerations.some(
        (t) =>
          ((t.key ?? "") === "" || t.key === key) && ((t.effect ?? "") === "" || t.effect === "NoExecute"),
      ),
  );
  if (missing.length === 0) return object;
  const added = missing.map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 300,
  }));
  return { ...pod, spec: { ...pod.spec, tolerations: [...tolerations, ...added] } } as KubeObject;
}

/** Refuses pods whose service account is not there. */
export const serviceAccountRequired: AdmissionPlugin = {
  name: "ServiceAccount",
  onCreate({ store }, { of }, object) {
    if (of.group !== "" || of.plural !== "pods") return object;
    const pod = object as Pod;
    const name = pod.spec?.serviceAccountName || "default";
    const namespace = pod.metadata?.namespace ?? "";
    if (store.table("serviceaccounts").get(namespace, name) === undefined) {
      const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
      throw forbidden({ group: "", resource: "pods" }, pod.metadata?.name ?? "", why);
    }
    return { ...pod, spec: { ...pod.spec, serviceAccountName: name, serviceAccount: name } } as KubeObject;
  },
};
