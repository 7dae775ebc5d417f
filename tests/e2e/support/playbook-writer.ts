/** The pod of the playbooks: a StatefulSet of one, which writes to a volume of a class. */

/** Its manifest, as JSON, which is YAML too. */
export function playbookWriter(storageClassName: string): string {
  const labels = { app: "writer" };
  const script = "while date >> /data/records; do sleep 0.2; done";
  const set = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "writer" },
    spec: {
      serviceName: "writer",
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [
            {
              name: "writer",
              image: "example.com/writer",
              command: ["/bin/sh", "-c", script],
              volumeMounts: [{ name: "data", mountPath: "/data" }],
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            storageClassName,
            resources: { requests: { storage: "64Mi" } },
          },
        },
      ],
    },
  };
  return `${JSON.stringify(set, undefined, 2)}\n`;
}
