/** What a process uses, under the names that every client library of Prometheus has for it. */
import { readdirSync, readFileSync } from "node:fs";
import type { Meter } from "@longshore/runtime";

/** Adds the metrics; they are measured when they are read. What the system does not say (outside Linux) is left out. */
export function addProcessMetrics(meter: Meter): void {
  const cpu = meter.counter("process_cpu_seconds_total", {
    help: "Total user and system CPU time spent in seconds.",
  });
  const resident = meter.gauge("process_resident_memory_bytes", { help: "Resident memory size in bytes." });
  let countedSeconds = 0;
  meter.beforeReading(() => {
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1e6;
    cpu.add(seconds - countedSeconds);
    countedSeconds = seconds;
    resident.set(process.memoryUsage.rss());
  });
  if (process.platform !== "linux") return;
  const virtual = meter.gauge("process_virtual_memory_bytes", { help: "Virtual memory size in bytes." });
  const mostVirtual = meter.gauge("process_virtual_memory_max_bytes", {
    help: "Maximum amount of virtual memory available in bytes.",
  });
  const open = meter.gauge("process_open_fds", { help: "Number of open file descriptors." });
  const most = meter.gauge("process_max_fds", { help: "Maximum number of open file descriptors." });
  meter.beforeReading(() => {
    virtual.set(1024 * numberIn("/proc/self/status", /^VmSize:\s*(\d+) kB$/m));
    mostVirtual.set(limitIn("Max address space"));
    open.set(readdirSync("/proc/self/fd").length);
    most.set(limitIn("Max open files"));
  });
}

/** The soft limit; "unlimited" is the largest number, as in the client libraries. */
function limitIn(name: string): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const text = new RegExp(`^${name}\\s+(\\S+)`, "m").exec(limits)?.[1];
  return text === "unlimited" ? 2 ** 64 : Number(text ?? 0);
}

function numberIn(file: string, pattern: RegExp): number {
  return Number(pattern.exec(readFileSync(file, "utf8"))?.[1] ?? 0);
}
