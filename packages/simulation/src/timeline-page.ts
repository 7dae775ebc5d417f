/**
 * A page that shows who held which disk when: one HTML file without scripts or anything from elsewhere. A lane for each disk on
 * each node, above them the crossing and what the components suffered, below them the story.
 */
import type { DiskSpan, DiskTimeline } from "./disk-timeline.ts";
import { type TimelineScale, timelineScale } from "./timeline-scale.ts";
import { type TraceEvent, traceLine } from "./trace.ts";

const labelWidth = 230;
const axisWidth = 1240;
const laneHeight = 22;

interface Lane {
  readonly label: string;
  readonly marks: readonly string[];
}

/** What the page says above the picture. */
export interface TimelineHeading {
  readonly title: string;
  /** What broke the contract; empty: nothing. */
  readonly violations: readonly string[];
}

/** Renders the page. */
export function timelinePage(timeline: DiskTimeline, { title, violations }: TimelineHeading): string {
  const { events, endMs } = timeline;
  const spans = timeline.spans();
  // What the cloud does to lists comes all the time, and is no reason to draw a pause long.
  const notable = events.filter((e) => e.kind !== "cloud");
  const times = [...notable.map((e) => e.atMs), ...spans.flatMap((s) => [s.fromMs, s.toMs ?? endMs])];
  const scale = timelineScale(times, endMs, axisWidth);
  const lanes = [
    { label: "the crossing", marks: crossingMarks(events, scale) },
    ...lifeLanes(events, endMs, scale),
    { label: "the cloud", marks: ticks(eventsOf(events, "cloud"), scale, "cloud") },
    ...diskLanes(spans, endMs, scale),
  ];
  const height = lanes.length * laneHeight + 40;
  const broken = events.filter((e) => e.kind === "broken");
  const verdict =
    violations.length === 0
      ? '<p class="kept">The contract was kept.</p>'
      : `<ul class="broke">${violations.map((text) => `<li>${escaped(text)}</li>`).join("")}</ul>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${verdict}
<p class="legend"><span class="attached"></span> attached <span class="in-tree"></span> mounted by the in-tree code
<span class="csi"></span> mounted by CSI <span class="down"></span> a component is down <span class="pause"></span> a pause, drawn short</p>
<svg viewBox="0 0 ${labelWidth + axisWidth + 10} ${height}" width="${labelWidth + axisWidth + 10}" height="${height}" role="img" aria-label="${escaped(title)}">
${scale.pauses.map((pause) => pauseBand(pause, scale, height)).join("\n")}
${lanes.map((lane, at) => laneShape(lane, at)).join("\n")}
${axis(endMs, scale, height)}
${broken.map((event) => brokenLine(event, scale, height)).join("\n")}
</svg>
<h2>The story</h2>
<ol>
${events.map((event) => `<li class="${event.kind}">${escaped(traceLine(event))}</li>`).join("\n")}
</ol>
</body>
</html>
`;
}

function laneShape({ label, marks }: Lane, at: number): string {
  const y = at * laneHeight + 4;
  return `<g transform="translate(0 ${y})"><text class="label" x="${labelWidth - 8}" y="14">${escaped(label)}</text><line class="ground" x1="${labelWidth}" x2="${labelWidth + axisWidth}" y1="${laneHeight - 2}" y2="${laneHeight - 2}"/><g transform="translate(${labelWidth} 0)">${marks.join("")}</g></g>`;
}

function diskLanes(spans: readonly DiskSpan[], endMs: number, scale: TimelineScale): readonly Lane[] {
  const lanes = new Map<string, DiskSpan[]>();
  const order = [...spans].sort(
    (a, b) => a.diskId.localeCompare(b.diskId) || a.nodeName.localeCompare(b.nodeName),
  );
  for (const span of order) {
    const label = `${span.diskId} on ${span.nodeName}`;
    lanes.set(label, [...(lanes.get(label) ?? []), span]);
  }
  const isAttached = (span: DiskSpan) => Number(span.how !== "attached");
  return [...lanes].map(([label, held]) => ({
    label,
    // What is mounted is drawn over what is attached.
    marks: held.sort((a, b) => isAttached(a) - isAttached(b)).map((span) => spanShape(span, endMs, scale)),
  }));
}

function spanShape({ how, diskId, nodeName, fromMs, toMs }: DiskSpan, endMs: number, scale: TimelineScale) {
  const kind = how.replace("mounted ", "");
  const [y, height] = how === "attached" ? [2, 16] : [6, 8];
  const until = toMs === undefined ? "the end" : seconds(toMs);
  const words = `${diskId} ${how} on ${nodeName}, ${seconds(fromMs)} to ${until}`;
  return bar(kind, fromMs, toMs ?? endMs, scale, y, height, words);
}

/** A lane for each component that crashed: when it was down. */
function lifeLanes(events: readonly TraceEvent[], endMs: number, scale: TimelineScale): readonly Lane[] {
  const bySubject = new Map<string, TraceEvent[]>();
  for (const event of eventsOf(events, "life")) {
    bySubject.set(event.subject, [...(bySubject.get(event.subject) ?? []), event]);
  }
  return [...bySubject]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([label, lives]) => ({ label, marks: downMarks(lives, endMs, scale) }));
}

function downMarks(lives: readonly TraceEvent[], endMs: number, scale: TimelineScale): readonly string[] {
  return lives.flatMap((event, at) => {
    if (!event.text.startsWith("crashes")) {
      return event.text.startsWith("restarts") ? ticks([event], scale, "down") : [];
    }
    const untilMs = lives[at + 1]?.atMs ?? endMs;
    return [bar("down", event.atMs, untilMs, scale, 3, 14, `${event.subject} ${event.text}`)];
  });
}

function crossingMarks(events: readonly TraceEvent[], scale: TimelineScale): readonly string[] {
  return [
    ...ticks(eventsOf(events, "crossing"), scale, "crossing"),
    ...ticks(eventsOf(events, "rest"), scale, "rest"),
  ];
}

function ticks(events: readonly TraceEvent[], scale: TimelineScale, kind: string): string[] {
  return events.map((event) => {
    const x = scale.x(event.atMs).toFixed(1);
    return `<rect class="${kind}" x="${x}" y="3" width="2.5" height="14"><title>${escaped(traceLine(event).trim())}</title></rect>`;
  });
}

function bar(
  kind: string,
  fromMs: number,
  toMs: number,
  scale: TimelineScale,
  y: number,
  height: number,
  words: string,
): string {
  const x = scale.x(fromMs);
  const width = Math.max(1.5, scale.x(toMs) - x);
  return `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${height}"><title>${escaped(words)}</title></rect>`;
}

function pauseBand(
  { fromMs, toMs }: TimelineScale["pauses"][number],
  scale: TimelineScale,
  height: number,
): string {
  const x = labelWidth + scale.x(fromMs);
  const width = labelWidth + scale.x(toMs) - x;
  return `<rect class="pause" x="${x.toFixed(1)}" y="0" width="${width.toFixed(1)}" height="${height - 34}"><title>${escaped(`nothing happened for ${seconds(toMs - fromMs)}`)}</title></rect>`;
}

function brokenLine(event: TraceEvent, scale: TimelineScale, height: number): string {
  const x = (labelWidth + scale.x(event.atMs)).toFixed(1);
  return `<line class="broken" x1="${x}" x2="${x}" y1="0" y2="${height - 34}"><title>${escaped(traceLine(event).trim())}</title></line>`;
}

function axis(endMs: number, scale: TimelineScale, height: number): string {
  const marks: string[] = [];
  let lastX = Number.NEGATIVE_INFINITY;
  for (let ms = 0; ms <= endMs; ms += 1000) {
    const x = scale.x(ms);
    if (x - lastX < 90) continue;
    lastX = x;
    marks.push(
      `<text class="time" x="${(labelWidth + x).toFixed(1)}" y="${height - 14}">${seconds(ms)}</text><line class="ground" x1="${(labelWidth + x).toFixed(1)}" x2="${(labelWidth + x).toFixed(1)}" y1="0" y2="${height - 28}"/>`,
    );
  }
  return marks.join("");
}

function eventsOf(events: readonly TraceEvent[], kind: TraceEvent["kind"]): readonly TraceEvent[] {
  return events.filter((event) => event.kind === kind);
}

function seconds(ms: number): string {
  const all = Math.round(ms / 1000);
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor((all % 3600) / 60)];
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${all % 60} s` : `${(ms / 1000).toFixed(1)} s`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const style = `
body { font: 14px/1.4 system-ui, sans-serif; margin: 24px; color: #1b1f24; background: #fff; }
h1 { font-size: 20px; } h2 { font-size: 16px; }
.kept { color: #1a7f37; } .broke { color: #b42318; }
.legend span { display: inline-block; width: 22px; height: 10px; margin: 0 4px 0 14px; }
svg text { font-size: 12px; } .label { text-anchor: end; } .time { fill: #59636e; text-anchor: middle; }
.ground { stroke: #e4e8ec; } rect.pause { fill: #f3f4f6; } .legend .pause { background: #e4e8ec; }
rect.attached { fill: #d0d7de; } .legend .attached { background: #d0d7de; }
rect.in-tree { fill: #bf8700; } .legend .in-tree { background: #bf8700; }
rect.csi { fill: #0969da; } .legend .csi { background: #0969da; }
rect.down { fill: #cf222e; opacity: 0.75; } .legend .down { background: #cf222e; }
rect.crossing { fill: #8250df; } rect.rest { fill: #1a7f37; } rect.cloud { fill: #57606a; }
line.broken { stroke: #cf222e; stroke-width: 2; stroke-dasharray: 4 2; }
ol { font: 12px/1.5 ui-monospace, monospace; list-style: none; padding: 0; }
li { white-space: pre-wrap; }
li.broken, li.life { color: #b42318; } li.crossing, li.rest { color: #6639ba; font-weight: 600; } li.disk { color: #0550ae; }
`;
