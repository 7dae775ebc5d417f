/**
 * A provider's disk API for the term of a leader, as `fencedClient` is for the API server: no call begins once
 * the lease may have lapsed. A process that was stopped and goes on could otherwise detach what its successor,
 * or CSI after a crossing, has attached.
 */
import { LeadershipLostError, type Term } from "@longshore/kube";
import type { Clock } from "@longshore/runtime";
import { CloudError, type DiskCloud } from "@longshore/volumes";

/** The error that says that the lease may have lapsed; undefined: it lasts. */
export function leadLost(clock: Clock, term: Term): LeadershipLostError | undefined {
  const lasts = !term.signal.aborted && clock.monotonicMs() < term.endsMs();
  return lasts ? undefined : new LeadershipLostError(term.lease);
}

/** The cloud with its calls fenced; one outside the term fails with Unavailable and is not sent. */
export function fencedCloud(cloud: DiskCloud, clock: Clock, term: Term): DiskCloud {
  return new Proxy(cloud, {
    get(target, property) {
      const member = Reflect.get(target, property, target) as unknown;
      if (typeof member !== "function") return member;
      return async (...args: unknown[]) => {
        const cause = leadLost(clock, term);
        if (cause !== undefined) {
          const message = `${String(property)} is not sent: the lease may have lapsed`;
          throw new CloudError("Unavailable", message, { cause });
        }
        return Reflect.apply(member, target, args);
      };
    },
  });
}
