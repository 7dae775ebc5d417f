/** What the containers of a cluster have said, from its directory alone: also of one that does not run. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messagesOf } from "../../../packages/local/src/containers/log-line.ts";

/** The output of every container of the pods with this part in their names, one text a run. */
export function podLogsBelow(clusterDir: string, podName: string): string[] {
  const pods = join(clusterDir, "logs/pods");
  const names = existsSync(pods) ? readdirSync(pods).filter((pod) => pod.includes(podName)) : [];
  return names.flatMap((pod) =>
    readdirSync(join(pods, pod)).map((file) => messagesOf(readFileSync(join(pods, pod, file), "utf8"))),
  );
}
