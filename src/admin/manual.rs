//! The manual page: the command line as it is defined, and what a definition does not say.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;

/// What comes after the commands.
const REST: &str = include_str!("manual.roff");

/// Writes the page: the command itself, each of its subcommands, and then exit codes, signals, variables and files.
///
/// # Errors
/// The writer's.
pub fn write(mut command: Command, to: &mut impl Write) -> io::Result<()> {
    command.build();
    let manual = Man::new(command.clone());
    manual.render_title(to)?;
    // As `whatis` reads it: one line.
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(to, ".SH NAME\nheadcount \\- {}", about.replace('-', "\\-"))?;
    writeln!(to, ".SH SYNOPSIS\n.B headcount\n[\\fICOMMAND\\fR [\\fIOPTIONS\\fR]]")?;
    writeln!(
        to,
        ".SH DESCRIPTION\nWithout a command it serves. What it is and promises, each route, each setting and"
    )?;
    writeln!(to, "each limit are told in the documentation: see FILES.\n.SH COMMANDS")?;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let mut subcommand = subcommand.clone().mut_arg("help", |help| help.hide(true));
        let usage = subcommand.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").trim().replace('-', "\\-");
        writeln!(to, ".SS \"{usage}\"")?;
        let manual = Man::new(subcommand);
        let mut section = Vec::new();
        manual.render_description_section(&mut section)?;
        manual.render_options_section(&mut section)?;
        // Parts of a section are no sections.
        for line in String::from_utf8_lossy(&section).lines().filter(|line| !line.starts_with(".SH ")) {
            writeln!(to, "{line}")?;
        }
    }
    to.write_all(REST.as_bytes())
}
