/** Loads the models, tracks and figures of an account while its owner is signed in. */

import type { GatewayClient } from '../../client/gateway-client.ts';
import { GatewayRequestError } from '../../client/gateway-request.ts';
import type { AccountPanel } from './account-panel.ts';
import { createFeed, type FeedOptions } from './feed.ts';
import type { GenerateForm } from './generate-form.ts';
import type { Library } from './library.ts';
import { RECORDINGS_PATH, type Recordings } from './recordings.ts';
import {
  type Creation,
  type Recording,
  readActivity,
  readBalance,
  readCreations,
  readMusicModels,
  readRecordings,
  readSummary,
} from './records.ts';

export interface AccountFeeds {
  /** Starts to load everything. */
  begin(): void;
  /** Reloads what a generation or a change of visibility may have changed. */
  refreshAccount(): void;
  /** Reloads everything now, also what waits after a failure. */
  refreshAll(): void;
  /** Stops loading and clears the page, because another person may sign in next. */
  end(): void;
}

export interface AccountFeedsOptions extends Pick<FeedOptions<unknown>, 'onFailure' | 'onRecovery'> {
  readonly form: Pick<GenerateForm, 'showModels' | 'showBalance'>;
  readonly library: Pick<Library, 'show' | 'showFailure'>;
  readonly account: AccountPanel;
  readonly recordings: Pick<Recordings, 'show' | 'leave'>;
  /** Ends these feeds if the account is not the same any more. Rejects if that cannot be found out. */
  readonly confirmAccount: () => Promise<unknown>;
}

export function createAccountFeeds(
  client: Pick<GatewayClient, 'models' | 'creations' | 'upstreamData'>,
  { form, library, account, recordings, confirmAccount, ...events }: AccountFeedsOptions,
): AccountFeeds {
  /** A feed that shows nothing of another account: that may have signed in, in another tab, before the response. */
  const createAccountFeed = <T>({
    load,
    onFailure = () => {},
    ...options
  }: Pick<FeedOptions<T>, 'load' | 'show' | 'isUnsettled'> & { readonly onFailure?: () => void }) =>
    createFeed<T>({
      async load() {
        const value = await load();
        await confirmAccount();
        return value;
      },
      ...options,
      onFailure(error) {
        onFailure();
        events.onFailure(error);
      },
      onRecovery: events.onRecovery,
    });
  const showBalance = (credits: number | undefined) => {
    account.showBalance(credits);
    form.showBalance(credits);
  };
  const models = createAccountFeed({
    load: async () => readMusicModels(await client.models()),
    show: form.showModels,
  });
  const touched = [
    createAccountFeed({
      load: async () => readCreations(await client.creations()),
      show: library.show,
      onFailure: library.showFailure,
      isUnsettled: (creations: readonly Creation[]) => creations.some(({ isGenerating }) => isGenerating),
    }),
    createAccountFeed({
      load: () => loadRecordings(client),
      show: recordings.show,
    }),
    createAccountFeed({
      load: async () => readBalance(await client.upstreamData('/v1/billing/balance')),
      show: showBalance,
    }),
    createAccountFeed({
      load: async () => readActivity(await client.upstreamData('/v1/activity')),
      show: account.showActivity,
    }),
    createAccountFeed({
      load: async () => readSummary(await client.upstreamData(`/v1/billing/summary?month=${thisMonth()}`)),
      show: account.showSummary,
    }),
  ];
  const all = [models, ...touched];
  const refresh = (feeds: typeof all) => {
    for (const feed of feeds) feed.refresh();
  };

  let isOpen = false;
  return {
    begin() {
      isOpen = true;
      refresh(all);
    },
    refreshAccount() {
      if (isOpen) refresh(touched);
    },
    refreshAll() {
      if (isOpen) refresh(all);
    },
    end() {
      isOpen = false;
      for (const feed of all) feed.stop();
      form.showModels(undefined);
      library.show(undefined);
      recordings.leave();
      showBalance(undefined);
      account.showActivity(undefined);
      account.showSummary(undefined);
    },
  };
}

/** Undefined if the upstream has no recordings to start from. */
async function loadRecordings(
  client: Pick<GatewayClient, 'upstreamData'>,
): Promise<readonly Recording[] | undefined> {
  try {
    return readRecordings(await client.upstreamData(RECORDINGS_PATH));
  } catch (error) {
    if (error instanceof GatewayRequestError && error.status === 404) return undefined;
    throw error;
  }
}

/** The month as `YYYY-MM`, in UTC because the upstream uses UTC. */
function thisMonth(): string {
  return new Date().toISOString().slice(0, 7);
}
