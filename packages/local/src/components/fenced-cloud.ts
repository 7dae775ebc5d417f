/**
 * A provider's disk API for the term of a leader, as `fencedClient` is for the API server: no call begins once
 * the lease may have lapsed. A process that was stopped and goes on could otherwise detach what its successor,
 * or CSI after a crossing, has attached.
 */
import { LeadershipLostError, type Term } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { CloudError, type DiskCloud } from "@longshore/volumes";

/** The cloud with its calls fenced; one outside the term fails with Unavailable and is not sent. */
export function fencedCloud(cloud: DiskCloud, clock: Clock, term: Term): DiskCloud {
  return new Proxy(cloud, {
    get(target, property) {
      const member = Reflect.get(target, property, target) as unknown;
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        if (term.signal.aborted || clock.monotonicMs() >= term.endsMs()) {
          throw new CloudError("Unavailable", `${String(property)} is not sent: the lease may have lapsed`, {
            cause: new LeadershipLostError(term.lease),
          });
        }
        return Reflect.apply(member, target, args);
      };
    },
  });
}
