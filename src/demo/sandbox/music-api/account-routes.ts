/** The upstream's routes for an account's profile, activity, balance and monthly summary. */

import { ApiError } from './api-error.ts';
import { dataResponse, methods, type RequireAccount } from './route.ts';

export function accountRoutes(requireAccount: RequireAccount, now: () => number) {
  return {
    '/v1/me': methods({ GET: (request) => dataResponse(requireAccount(request).profile()) }),
    '/v1/activity': methods({ GET: (request) => dataResponse(requireAccount(request).activity()) }),
    '/v1/billing/balance': methods({ GET: (request) => dataResponse(requireAccount(request).balance()) }),
    '/v1/billing/summary': methods({
      GET: (request) => {
        const account = requireAccount(request);
        const thisMonth = new Date(now()).toISOString().slice(0, 7);
        const month = new URL(request.url).searchParams.get('month') ?? thisMonth;
        if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) throw new ApiError(422, 'month must be YYYY-MM');
        return dataResponse(account.summary(month));
      },
    }),
  };
}
