//! Draws what `top` knows: in 80 columns and 24 rows, and in more.

use std::time::Duration;

use lock_runtime::inspect::Status;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use crate::duration::{clock, short};
use crate::ls;
use crate::revoking::{prospects, silence};
use crate::status::{self, dash, holder_row, waiter_row};
use crate::top::state::{Mode, Page, State};
use crate::words::{are_held, tame};

pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let says = state.trouble.is_some() || state.message.is_some();
    let rows = [
        Constraint::Length(if says { 4 } else { 3 }),
        Constraint::Min(3),
        Constraint::Length(1),
    ];
    let [head, body, foot] = Layout::vertical(rows).areas(frame.area());
    totals(frame, head, state);
    match &state.page {
        Page::List => list(frame, body, state),
        Page::Details(key, None) => {
            let text = format!("{}: asking …", tame(key.as_str()));
            frame.render_widget(Paragraph::new(text), body);
        }
        Page::Details(_, Some(status)) => {
            let is_asked = matches!(state.mode, Mode::Question(_));
            details(frame, body, status, is_asked);
        }
    }
    footer(frame, foot, state);
}

fn totals(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let it = state.totals();
    let wait = it
        .longest_wait_ms
        .map_or_else(dash, |it| short(Duration::from_millis(it)));
    let latency = it
        .latency_us
        .map_or_else(dash, |it| format!("{}.{} ms", it / 1_000, it % 1_000 / 100));
    let grants = it
        .grants_per_second
        .map_or_else(dash, |it| format!("{it:.1}/s"));
    let number = |text: String| Span::from(text).bold();
    let first = Line::from(vec![
        "lockctl top".cyan().bold(),
        "   held ".into(),
        number(it.held.to_string()),
        "   waiting ".into(),
        number(it.waiting.to_string()),
        "   longest wait ".into(),
        number(wait),
        spark(state.course().map(|(waiting, _)| waiting), area.width),
    ]);
    let second = Line::from(vec![
        "grants ".into(),
        number(grants),
        "   hand-overs ".into(),
        number(format!("{:.1}/s", it.hand_overs_per_second)),
        "   latency ".into(),
        number(latency),
        spark(state.course().map(|(_, handed)| handed), area.width),
    ]);
    let seen = state.seen.map_or_else(dash, clock);
    let as_of = Line::from(format!("{}, as of {seen}", state.store)).dim();
    let said = match (&state.trouble, &state.message) {
        (Some(trouble), _) => Some(Line::from(trouble.clone()).red().bold()),
        (None, message) => message.clone().map(|it| Line::from(it).yellow()),
    };
    let lines = [first, second, as_of].into_iter().chain(said);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// The course of a number over the last looks, where there is room for it.
fn spark(values: impl ExactSizeIterator<Item = f64> + Clone, width: u16) -> Span<'static> {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let room = usize::from(width.saturating_sub(60));
    let older = values.len().saturating_sub(room);
    let shown = values.skip(older);
    let most = shown.clone().fold(f64::MIN_POSITIVE, f64::max);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and 7"
    )]
    let bar = |value: f64| BARS[(value / most * 7.0).round() as usize];
    let bars: String = shown.map(bar).collect();
    format!("   {bars}").cyan()
}

fn list(frame: &mut Frame<'_>, area: Rect, state: &State) {
    // No more than can be seen is made into text.
    let shown = usize::from(area.height.saturating_sub(1)).max(1);
    let all = state.rows();
    if all.is_empty() && state.has_looked() {
        let text = match &*state.filter {
            "" => "no lock is held or waited for".to_owned(),
            filter => {
                let held = are_held(state.totals().held);
                format!("no lock matches `{}` ({held})", tame(filter))
            }
        };
        let dim = Style::new().add_modifier(Modifier::DIM);
        return frame.render_widget(Paragraph::new(text).style(dim), area);
    }
    let first = state.selected.saturating_sub(shown.saturating_sub(1));
    let silent = all.iter().any(|(lock, _)| ls::is_silent(lock));
    let columns = columns(area.width, silent);
    let rows = all.iter().skip(first).take(shown).map(|(lock, heat)| {
        let cells = ls::row(lock).into_iter().chain([heat.to_string()]);
        let cells: Vec<_> = cells.collect();
        let style = match lock.waiting {
            0 => Style::new(),
            _ => Style::new().fg(Color::Yellow),
        };
        Row::new(columns.iter().map(|(at, _)| Cell::from(cells[*at].clone()))).style(style)
    });
    let headings: Vec<_> = ls::HEADING.into_iter().chain(["HOT"]).collect();
    let heading = columns.iter().map(|(at, _)| headings[*at]);
    let table = Table::new(rows, columns.iter().map(|(_, width)| *width))
        .header(Row::new(heading).style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selection = TableState::new().with_selected(state.selected - first);
    frame.render_stateful_widget(table, area, &mut selection);
}

/// Which cells of a lock are shown, and how wide: in 80 columns its kind and its heat are left out. Where a holder is
/// silent, that stands behind the time.
fn columns(width: u16, silent: bool) -> Vec<(usize, Constraint)> {
    let all = [
        Constraint::Fill(3),
        Constraint::Length(14),
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(if silent { 17 } else { 8 }),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(12),
        Constraint::Length(4),
    ];
    let columns = all.into_iter().enumerate();
    columns
        .filter(|(at, _)| width >= 110 || !matches!(at, 1 | 8))
        .collect()
}

/// The holders of a lock, and its queue, or what has to be known before it is revoked.
fn details(frame: &mut Frame<'_>, area: Rect, status: &Status, is_asked: bool) {
    let holders = u16::try_from(status.holders.len()).unwrap_or(u16::MAX);
    let silent = status.holders.iter().find(|it| it.answers == Some(false));
    let rows = [
        // What silence means may take two lines.
        Constraint::Length(if silent.is_some() { 4 } else { 2 }),
        Constraint::Length(holders.min(6).saturating_add(2)),
        Constraint::Min(2),
    ];
    let [title, above, below] = Layout::vertical(rows).areas(area);
    let state = match (status.is_held(), status.is_cooling_down()) {
        (true, _) => "held".yellow(),
        (false, true) => "cooldown".yellow(),
        (false, false) => "free".green(),
    };
    let key = tame(status.key.as_str()).into_owned();
    let waiters = format!(", {} waiting", status.waiting);
    let line = Line::from(vec![key.bold(), "  ".into(), state, waiters.into()]);
    let note = Line::from(silent.map_or_else(String::new, silence)).yellow();
    let text = Paragraph::new(vec![line, note]).wrap(Wrap { trim: true });
    frame.render_widget(text, title);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(9),
        Constraint::Length(12),
        Constraint::Length(17),
        Constraint::Length(9),
    ];
    let holders = status.holders.iter().map(|it| Row::new(holder_row(it)));
    let heading = Row::new(status::HOLDER);
    frame.render_widget(
        Table::new(holders, widths).header(heading.style(dim)),
        above,
    );
    if is_asked {
        let lines: Vec<_> = prospects(status).into_iter().map(Line::from).collect();
        let text = Paragraph::new(lines).wrap(Wrap { trim: true });
        return frame.render_widget(text, below);
    }
    if status.waiters.is_empty() {
        return;
    }
    let widths = [
        Constraint::Length(8),
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(12),
    ];
    let most = usize::from(below.height);
    let queue = status.waiters.iter().take(most).enumerate();
    let queue = queue.map(|(at, it)| Row::new(waiter_row(at + 1, it)));
    let heading = Row::new(status::WAITER);
    frame.render_widget(Table::new(queue, widths).header(heading.style(dim)), below);
}

fn footer(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let line = match (&state.mode, &state.page) {
        (Mode::Filter, _) => Line::from(format!("filter: {}▏", tame(&state.filter))),
        (Mode::Question(key), _) => {
            let key = tame(key.as_str());
            let question = format!("Revoke `{key}`? [y/N]");
            Line::from(question).style(Style::new().fg(Color::Black).bg(Color::Yellow))
        }
        (Mode::Commands, Page::Details(..)) => Line::styled("esc back  f revoke  q quit", dim),
        (Mode::Commands, Page::List) => {
            let sort = state.sort.name();
            let filter = match &*state.filter {
                "" => String::new(),
                filter => format!(" ({})", tame(filter)),
            };
            let text = format!(
                "↑↓ choose  enter details  / filter{filter}  s sort: {sort}  f revoke  q quit"
            );
            Line::styled(text, dim)
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}
