/** Where containers' output lies, and reading it back: it outlives the pods. */
import type { Host } from "@longshore/runtime";

/** The log file of a pod's container. */
export function podLogFile(
  logDir: string,
  pod: { readonly namespace: string; readonly name: string; readonly uid: string },
  containerName: string,
): string {
  return `${logDir}/${pod.namespace}_${pod.name}_${pod.uid}/${containerName}.log`;
}

/** Logs of every pod that has had this name, one text a container. */
export async function readPodLogs(
  host: Host,
  logDir: string,
  namespace: string,
  podName: string,
): Promise<string[]> {
  const texts: string[] = [];
  for (const dir of (await host.readDirectory(logDir)) ?? []) {
    if (!dir.startsWith(`${namespace}_${podName}_`)) continue;
    for (const file of (await host.readDirectory(`${logDir}/${dir}`)) ?? []) {
      texts.push((await host.readFile(`${logDir}/${dir}/${file}`)) ?? "");
    }
  }
  return texts;
}
