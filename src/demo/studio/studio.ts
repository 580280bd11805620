/** The Studio's page: connects its parts, and switches between signed out and signed in. */

import { createGatewayClient } from '../../client/gateway-client.ts';
import { createLiveAudio } from '../../client/live-audio/live-audio.ts';
import { createAccountFeeds } from './account-feeds.ts';
import { createAccountPanel } from './account-panel.ts';
import { openMemory } from './browser-memory.ts';
import type { StudioConfig } from './config.ts';
import { createDeletions } from './deletions.ts';
import { saveTrack } from './download.ts';
import { unlessGone } from './failure.ts';
import { createGenerateForm } from './generate-form.ts';
import { createGenerationProgress } from './generation-progress.ts';
import { createGenerations } from './generations.ts';
import { createLibrary } from './library.ts';
import { createMusic } from './music.ts';
import { createNotice } from './notice.ts';
import { fillOrder } from './order-fields.ts';
import { connectOrderOptions } from './order-options.ts';
import { connectOtherTabs } from './other-tabs.ts';
import { part } from './parts.ts';
import { createPieces } from './pieces.ts';
import type { Track } from './playback.ts';
import { createQuestion } from './question.ts';
import { createRecordings } from './recordings.ts';
import type { Creation } from './records.ts';
import { createRememberedTrack } from './remembered-track.ts';
import { createReports } from './reports.ts';
import { createSessionPanel, type SessionStatus } from './session-panel.ts';
import { shareAddress, showSharedTrack } from './shared-track.ts';
import { createSigning } from './signing.ts';
import { connectLanguageSelect, createText } from './text.ts';
import { contentPath, ownTrack, publicTrack } from './tracks.ts';
import { whenBack } from './when-back.ts';

const memory = openMemory(() => localStorage);
const text = createText({ document, languages: navigator.languages, storage: memory });
connectLanguageSelect(part<HTMLSelectElement>(document, 'language'), text);
connectOrderOptions(part<HTMLDetailsElement>(document, 'options'), window);
const tab = openMemory(() => sessionStorage);
const question = createQuestion(part<HTMLDialogElement>(document, 'question'), { text });
const notice = createNotice(part(document, 'notice'), { text, onTryNow: () => tryNow() });
let tryNow = async () => {};

/** Whose draft this tab has. */
const DRAFT_OWNER = 'studio.draft-owner';
/** The server sends this page for every path; the identity provider redirects to the second one. */
const isUnknownPath = !['/', '/callback'].includes(location.pathname);

async function openStudio({ gatewayUrl, identityProvider, pieces: ids }: StudioConfig): Promise<void> {
  const client = createGatewayClient({
    baseUrl: gatewayUrl,
    language: () => text.language,
    onRefresh: () => session.addRefresh(new Date()),
    onSessionChange: () => void session.check(),
  });
  const { report, describe, attempt } = createReports({ notice, onSessionEnd: () => session.end() });
  const signing = createSigning({ client, identityProvider, window, memory });
  const { player, peaks, open } = createMusic(document, {
    text,
    memory,
    onChange(track, isPlaying) {
      for (const list of [library, pieces, sharedTrack]) list.markPlaying(track?.id, isPlaying);
      generations.showListening(isPlaying ? track?.id : undefined);
      if (isPlaying) otherTabs.tell('sound');
    },
    onStep(from, by) {
      const creation = library.neighbour(from.id, by);
      if (creation) play(creation);
    },
    onEnd(track) {
      const creation = library.following(track.id);
      if (creation) play(creation);
      const piece = pieces.following(track.id);
      if (piece) playPublic(piece);
    },
  });
  const remembered = createRememberedTrack({ window, tab, player, open });
  const pieces = createPieces(part(document, 'pieces'), {
    ...{ text, client, ids },
    onLoad: (creations) => remembered.restore(creations.map((each) => publicTrack(client, each))),
    onPlay: playPublic,
    onPause: player.pause,
  });
  const library = createLibrary(part(document, 'library'), {
    text,
    onPlay: play,
    onPause: player.pause,
    onSetVisibility: ({ id }, isPublic) =>
      attempt(async () => {
        await client.setVisibility(id, isPublic);
        showChange();
      }),
    onRename: ({ id, title }) =>
      attempt(async () => {
        const name = await question.text('newName', 'rename', title);
        if (name === undefined) return;
        await client.rename(id, name);
        showChange();
      }),
    onDelete(creation) {
      if (player.has(creation.id)) player.close();
      return deletions.begin(creation);
    },
    onDownload: ({ id, title }, onProgress) =>
      attempt(async () => saveTrack(document, title, await client.download(contentPath(id), { onProgress }))),
    onAgain: (creation) => fillOrder(part(document, 'order'), creation),
    isElsewhere: (id) => generations.has(id) || deletions.has(id),
    shareUrl: ({ id }) => shareAddress(location.origin, id),
    copy: (address) => navigator.clipboard.writeText(address),
  });
  const deletions = createDeletions(part(document, 'deleted'), {
    ...{ text, tab, onChange: library.update, focusOn: library.focusOn },
    async remove(id) {
      await attempt(() => client.delete(id).catch(unlessGone));
      showChange();
      return document.body.dataset['session'] === 'signed-in';
    },
  });
  const generations = createGenerations({
    client,
    liveAudio: createLiveAudio(navigator.serviceWorker),
    player,
    peaks,
    progress: createGenerationProgress(part(document, 'progress'), {
      text,
      figures: part(document, 'figures'),
    }),
    storage: tab,
    account: () => session.account,
    confirmAccount: () => session.confirm(),
    ...{ onChange: showChange, onFound: library.update, onFailure: report },
  });
  const form = createGenerateForm(part(document, 'order'), {
    text,
    tab,
    async isMeant(prompt) {
      if (!(await recordings.settled())) return false;
      return !generations.isSentAgain(prompt) || question.isMeant('orderAgain', 'orderAnother');
    },
    onGenerate(order, idempotencyKey, onAccepted) {
      notice.clearLasting();
      return generations.order(order, idempotencyKey, onAccepted);
    },
  });
  const account = createAccountPanel(part(document, 'account'), { text });
  const recordings = createRecordings(part(document, 'recordings'), {
    text,
    client,
    attempt,
    describe: (error) => describe(error, 'sending'),
    isMeant: (name) => question.isMeant('deleteRecording', 'delete', { name }),
    onChange: showChange,
  });
  const feeds = createAccountFeeds(client, {
    form,
    library: {
      ...library,
      show(creations) {
        library.show(creations);
        // One of them may have a new name.
        for (const each of creations ?? []) player.describe(ownTrack(client, each));
        const whole = creations?.filter(({ isGenerating }) => !isGenerating) ?? [];
        remembered.restore(whole.map((each) => ownTrack(client, each)));
      },
    },
    account,
    recordings,
    confirmAccount: () => session.confirm(),
    onFailure: (error) => report(error, 'loading'),
    onRecovery: notice.clearPassing,
  });
  const session = createSessionPanel(part(document, 'session'), {
    text,
    async readSession() {
      const check = await client.session();
      for (const over of ['unreachable', 'offline'] as const) notice.clearPassing(over);
      return check;
    },
    signedInAt: signing.signedInAt,
    onSignIn: () => void attempt(signing.signIn, 'signing-in'),
    onSignOut: () => void attempt(signOut),
    onStatus: showStatus,
    onOtherAccount() {
      forgetAccount();
      notice.show({ advice: 'otherAccount' });
    },
  });
  tryNow = async () => {
    await session.check();
    feeds.refreshAll();
  };
  const otherTabs = connectOtherTabs((message) => {
    if (message === 'sound') player.pause();
    else feeds.refreshAccount();
  });
  whenBack(window, feeds.refreshAccount);
  let shared: Track | undefined;

  /** Shows what this tab has changed in the account, in the other tabs too. */
  function showChange(): void {
    feeds.refreshAccount();
    otherTabs.tell('account');
  }

  function showStatus(status: SessionStatus, before: SessionStatus): void {
    document.body.dataset['session'] = status;
    if (status === 'signed-out') pieces.show();
    else pieces.leave();
    if (status === 'signed-in') {
      notice.clearLasting();
      keepOwnDraft(session.account ?? '');
      feeds.begin();
      void deletions.settle();
      if (session.account !== undefined) generations.takeUp(session.account);
    } else if (before === 'signed-in') {
      showEnd();
    }
  }

  function showEnd(): void {
    const isMeant = signing.hasSignedOut();
    notice.show({ advice: isMeant ? 'signedOutElsewhere' : 'sessionEnded' });
    feeds.end();
    question.withdraw();
    deletions.suspend();
    player.close();
    if (shared) open(shared);
    // After another end, orders and draft wait for the same person to sign in again.
    if (isMeant) forgetAccount();
  }

  async function signOut(): Promise<void> {
    await deletions.settle();
    await signing.signOut();
    session.end();
    part(document, 'sign-in').focus();
    forgetAccount();
    notice.clearLasting();
  }

  /** Another person may sign in to a page that was left. */
  function keepOwnDraft(owner: string): void {
    if (tab.getItem(DRAFT_OWNER) !== owner) {
      form.empty();
      deletions.abandon();
    }
    tab.setItem(DRAFT_OWNER, owner);
  }

  /** Forgets what outlasts the end of a session, for the sake of a person who signs in again. */
  function forgetAccount(): void {
    form.empty();
    deletions.abandon();
    generations.abandonOthers(session.account);
    peaks.forget();
  }

  function playPublic(creation: Creation): void {
    open(publicTrack(client, creation));
    player.play();
  }

  function play(creation: Creation): void {
    if (!generations.open(creation)) open(ownTrack(client, creation));
    player.play();
  }

  const sharedTrack = showSharedTrack(part(document, 'shared'), {
    ...{ text, client, address: location.href, onPlay: player.play, onPause: player.pause },
    isPlayerFree: () => player.openId === undefined,
    onOpen(creation) {
      shared = publicTrack(client, creation);
      document.body.dataset['listens'] = 'shared';
      open(shared);
    },
  });
  let hasSignedIn = false;
  await attempt(async () => {
    hasSignedIn = await signing.complete();
  }, 'signing-in');
  // The session is shown there, not in the moment before.
  if (hasSignedIn && signing.returnToStart()) return;
  const isAfterSignIn = signing.hasReturned() || hasSignedIn;
  await session.check();
  if (isAfterSignIn) part(document, 'new-track').focus();
  // The sign-in was successful, so the browser has not kept its cookies.
  const isForgotten = isAfterSignIn && document.body.dataset['session'] === 'signed-out';
  if (isForgotten) notice.show({ advice: 'cookiesBlocked' });
  if (isUnknownPath) notice.show({ advice: 'noSuchPage' });
}

try {
  const response = await fetch('/config.json');
  await openStudio(await response.json());
} catch (error) {
  notice.show({ advice: 'unexpected' });
  throw error;
}
