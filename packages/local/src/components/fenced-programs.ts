/**
 * A host for the term of a leader: no program begins once the lease may have lapsed, as with the calls of
 * {@link fencedCloud}. A Flexvolume driver attaches and detaches with credentials of its own, so that nothing else would stop it.
 */
import type { Term } from "@longshore/kube";
import { type Clock, type Host, HostError } from "@longshore/runtime";
import { leadLost } from "./fenced-cloud.ts";
import { withPrograms } from "./host-programs.ts";

/** The host with its programs fenced; one outside the term fails with ECANCELED and is not run. */
export function fencedPrograms(host: Host, clock: Clock, term: Term): Host {
  return withPrograms(host, async (program, options) => {
    const lost = leadLost(clock, term);
    if (lost !== undefined) throw new HostError("runProgram", program, "ECANCELED", lost);
    return host.runProgram(program, options);
  });
}
