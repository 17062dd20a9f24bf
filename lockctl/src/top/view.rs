//! Draws what `top` knows: in 80 columns and 24 rows, and in more.

use std::time::Duration;

use lock_runtime::inspect::Status;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use crate::duration::short;
use crate::ls;
use crate::status::{dash, holder_row, waiter_row};
use crate::top::state::{Mode, Page, State};
use crate::words::tame;

pub(super) fn draw(frame: &mut Frame<'_>, state: &State) {
    let rows = [
        Constraint::Length(3),
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
        Page::Details(_, Some(status)) => details(frame, body, status),
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
    ]);
    let second = Line::from(vec![
        "grants ".into(),
        number(grants),
        "   hand-overs ".into(),
        number(format!("{:.1}/s", it.hand_overs_per_second)),
        "   latency ".into(),
        number(latency),
    ]);
    let third = match (&state.trouble, &state.message) {
        (Some(trouble), _) => Line::from(trouble.clone()).red().bold(),
        (None, Some(message)) => Line::from(message.clone()).yellow(),
        (None, None) => Line::default(),
    };
    frame.render_widget(Paragraph::new(vec![first, second, third]), area);
}

fn list(frame: &mut Frame<'_>, area: Rect, state: &State) {
    // No more than can be seen is made into text.
    let shown = usize::from(area.height.saturating_sub(1)).max(1);
    let all = state.rows();
    let first = state.selected.saturating_sub(shown.saturating_sub(1));
    let rows = all.iter().skip(first).take(shown).map(|(lock, heat)| {
        let mut cells: Vec<Cell<'_>> = ls::row(lock).map(Cell::from).into();
        cells.push(Cell::from(heat.to_string()));
        let style = match lock.waiting {
            0 => Style::new(),
            _ => Style::new().fg(Color::Yellow),
        };
        Row::new(cells).style(style)
    });
    let widths = [
        Constraint::Fill(3),
        Constraint::Length(14),
        Constraint::Fill(2),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(4),
    ];
    let heading = ls::HEADING.into_iter().chain(["HOT"]);
    let table = Table::new(rows, widths)
        .header(Row::new(heading).style(Style::new().add_modifier(Modifier::DIM)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selection = TableState::new().with_selected(state.selected - first);
    frame.render_stateful_widget(table, area, &mut selection);
}

fn details(frame: &mut Frame<'_>, area: Rect, status: &Status) {
    let holders = u16::try_from(status.holders.len()).unwrap_or(u16::MAX);
    let rows = [
        Constraint::Length(2),
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
    frame.render_widget(Paragraph::new(line), title);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(9),
        Constraint::Length(17),
        Constraint::Length(9),
    ];
    let holders = status.holders.iter().map(|it| Row::new(holder_row(it)));
    let heading = Row::new(["HOLDER", "FUNCTION", "HELD FOR", "FENCE", "TIME LEFT"]);
    frame.render_widget(
        Table::new(holders, widths).header(heading.style(dim)),
        above,
    );
    let widths = [
        Constraint::Length(8),
        Constraint::Fill(3),
        Constraint::Fill(3),
        Constraint::Length(11),
        Constraint::Length(9),
    ];
    let most = usize::from(below.height);
    let queue = status.waiters.iter().take(most).enumerate();
    let queue = queue.map(|(at, it)| Row::new(waiter_row(at + 1, it)));
    let heading = Row::new(["POSITION", "WAITER", "FUNCTION", "KIND", "WAITS FOR"]);
    frame.render_widget(Table::new(queue, widths).header(heading.style(dim)), below);
}

fn footer(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let dim = Style::new().add_modifier(Modifier::DIM);
    let line = match (&state.mode, &state.page) {
        (Mode::Filter, _) => Line::from(format!("filter: {}▏", tame(&state.filter))),
        (Mode::Question(key), _) => {
            let key = tame(key.as_str());
            let question =
                format!("Revoke `{key}`? Its work may overlap with the next holder's. [y/N]");
            Line::from(question).style(Style::new().fg(Color::Black).bg(Color::Yellow))
        }
        (Mode::Commands, Page::Details(..)) => Line::styled("esc back  f force  q quit", dim),
        (Mode::Commands, Page::List) => {
            let sort = state.sort.name();
            let filter = match &*state.filter {
                "" => String::new(),
                filter => format!(" ({})", tame(filter)),
            };
            let text = format!(
                "↑↓ choose  enter details  / filter{filter}  s sort: {sort}  f force  q quit"
            );
            Line::styled(text, dim)
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}
