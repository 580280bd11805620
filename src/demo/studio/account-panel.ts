/** Shows the account's balance, its recent activity, and this month's totals. */

import { fromTemplate, part } from './parts.ts';
import type { Activity, Summary } from './records.ts';
import type { Text } from './text.ts';

export interface AccountPanel {
  /** Here and below, undefined means that the value is not known yet. */
  showBalance(credits: number | undefined): void;
  /** Newest first. */
  showActivity(activity: readonly Activity[] | undefined): void;
  showSummary(summary: Summary | undefined): void;
}

const SHOWN = 6;

export function createAccountPanel(root: HTMLElement, { text }: { text: Text }): AccountPanel {
  const activityItem = ({ type, description, credits, at }: Activity): HTMLElement => {
    const element = fromTemplate(root.ownerDocument, 'activity-item');
    const what = part(element, 'what');
    if (type === 'sign_in') text.write(what, 'activitySignIn');
    else if (type === 'visibility') text.write(what, 'activityVisibility', { track: description });
    else if (type === 'deletion') text.write(what, 'activityDeletion', { track: description });
    else what.textContent = description || type;
    text.write(part(element, 'when'), at && 'on', { at: at ?? 0 });
    text.write(part(element, 'cost'), credits > 0 ? 'cost' : undefined, { credits });
    return element;
  };

  return {
    showBalance(credits) {
      text.write(part(root, 'balance'), credits === undefined ? 'none' : 'number', { value: credits ?? 0 });
    },
    showActivity(activity) {
      part(root, 'activity').replaceChildren(...(activity ?? []).slice(0, SHOWN).map(activityItem));
      const none = part(root, 'no-activity');
      text.write(none, activity ? 'noActivity' : 'activityLoading');
      none.hidden = activity !== undefined && activity.length > 0;
    },
    showSummary(summary) {
      const { tracks = 0, seconds = 0, credits = 0 } = summary ?? {};
      text.write(part(root, 'tracks'), summary ? 'number' : 'none', { value: tracks });
      text.write(part(root, 'music'), summary ? 'trackLength' : 'none', { seconds });
      text.write(part(root, 'spent'), summary ? 'number' : 'none', { value: credits });
    },
  };
}
