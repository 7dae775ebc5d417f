/** Where containers' output lies, and reading it back: it outlives the pods. */
import type { Host } from "@longshore/runtime";
import { messagesOf } from "./log-line.ts";

/** What names a pod's logs. */
export interface LoggedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The log file of one run of a container. Names of containers hold no `_`. */
export function podLogFile(logDir: string, pod: LoggedPod, containerName: string, attempt: number): string {
  return `${logDir}/${pod.namespace}_${pod.name}_${pod.uid}/${containerName}_${attempt}.log`;
}

/** Logs of every pod that has had this name, without times, one text a run of a container, in their order. */
export async function readPodLogs(
  host: Host,
  logDir: string,
  namespace: string,
  podName: string,
): Promise<string[]> {
  const texts: string[] = [];
  for (const dir of (await host.readDirectory(logDir)) ?? []) {
    if (!dir.startsWith(`${namespace}_${podName}_`)) continue;
    const files = (await host.readDirectory(`${logDir}/${dir}`)) ?? [];
    for (const file of files.filter((name) => name.endsWith(".log")).sort(byRun)) {
      texts.push(messagesOf((await host.readFile(`${logDir}/${dir}/${file}`)) ?? ""));
    }
  }
  return texts;
}

function byRun(a: string, b: string): number {
  const [nameA = "", runA = ""] = a.split("_");
  const [nameB = "", runB = ""] = b.split("_");
  return nameA === nameB ? Number.parseInt(runA, 10) - Number.parseInt(runB, 10) : nameA < nameB ? -1 : 1;
}
