export { type HealthMonitorOptions, serveVolumeHealth, startHealthMonitor } from "./health-monitor.ts";
