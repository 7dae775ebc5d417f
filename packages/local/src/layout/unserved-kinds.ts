/**
 * The kinds that can be created in a local cluster and that nothing in it works on: a real cluster has a controller, a proxy or an
 * add-on for them. The creation of one warns, so that users do not wait for what will not happen.
 */

/** What does not happen, by kind and group as `creationWarnings` of the API server takes them. */
const unserved: Readonly<Record<string, string>> = {
  "CertificateSigningRequest.certificates.k8s.io": "nothing signs it",
  "CronJob.batch": "no Job is made from it",
  "HorizontalPodAutoscaler.autoscaling": "nothing is scaled",
  "Ingress.networking.k8s.io": "no traffic is routed",
  "NetworkPolicy.networking.k8s.io": "no traffic is refused",
  ReplicationController: "no pods are made from it; use a ReplicaSet or a Deployment",
  Service: "it gets no address and no endpoints",
};

/** The warnings of a local cluster. */
export const unservedKindWarnings: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(unserved).map(([key, consequence]) => [
    key,
    `a local cluster does not serve the kind ${key.split(".")[0]}: ${consequence}`,
  ]),
);
